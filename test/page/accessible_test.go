package page

import (
	"context"
	_ "embed"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

//go:embed testdata/axe/axe.min.js
var axe string

// runAxe returns the violations as text: the rule, its help, and each element with the reason.
const runAxe = `axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}}).then((result) =>
	result.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.map((n) => "  " + n.html + "\n  " + n.failureSummary).join("\n")).join("\n"))`

// tooWide returns the elements beyond the right edge of the window as text, except those in a box that scrolls.
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? "" : [...document.body.querySelectorAll("*")].filter((e) =>
	e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll")).map((e) => e.outerHTML.slice(0, 200)).join("\n") || "something"`

// requireAccessible requires that axe-core finds no violation (WCAG 2.2 AA, contrast included) in light, in dark and on
// a narrow screen, and that the page never scrolls sideways.
func (b *browser) requireAccessible(name string) {
	b.t.Helper()
	for _, look := range []look{{1280, false}, {1280, true}, {390, true}} {
		b.as(look, func() {
			require.Empty(b.t, b.violations(), "%s, %+v", name, look)
			require.Empty(b.t, b.ask(tooWide), "%s, %+v", name, look)
		})
	}
}

// violations returns the violations that axe-core finds on the page.
func (b *browser) violations() string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserTimeout)
	defer cancel()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[string](`window.axe || (() => {`+axe+`})();`+runAxe, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	return found
}

// requireFaultsSeen plants a low contrast, a field without a name and a wide element, and requires that the checks see each of them.
func (b *browser) requireFaultsSeen() {
	b.t.Helper()
	b.ask(`document.querySelector("main").insertAdjacentHTML("beforeend", "<p id=pale>pale</p><input id=nameless><p id=wide>wide</p>"),
		document.getElementById("pale").style.color = "#ccc", document.getElementById("wide").style.width = "5000px", "planted"`)
	found := b.violations()
	require.Contains(b.t, found, "color-contrast: ")
	require.Contains(b.t, found, "label: ")
	require.Contains(b.t, b.ask(tooWide), "id=\"wide\"")
}

// look is a screen's width and colour scheme.
type look struct {
	width int64
	dark  bool
}

// as does something while the page looks in some way.
func (b *browser) as(l look, do func()) {
	b.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	dpr := emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: 860, DeviceScaleFactor: 1}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	b.do(command(emulation.SetDeviceMetricsOverride, dpr), command(emulation.SetEmulatedMedia, media))
	do()
	b.do(command(emulation.ClearDeviceMetricsOverride, cdp.Empty{}), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{}))
}
