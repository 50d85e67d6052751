package page

import (
	"html/template"
	"strings"
)

// content is what changes of a page, and what it was asked for with.
type content struct {
	Title  string
	Asked  any
	Blocks []piece
	Lists  []list
}

// piece is a part of a page: a template and what it shows. It is another one if that is not equal.
type piece struct {
	Key      string
	Template string
	Value    any
}

// list is rows, whose keys are all different.
type list struct {
	Name string
	Rows []piece
}

// link is one of the pages that are named at the top of each.
type link struct{ Name, Path, Title string }

// Pages are they, in their order.
func (*view) Pages() []link {
	return []link{{"locks", "/", "Locks"}, {"events", "/events", "Events"}, {"hosts", "/hosts", "Hosts"}, {"members", "/members", "Members"}}
}

// view is what the template of a page has.
type view struct {
	*content
	Kind    string
	Live    string // address of the stream; empty: the page stays as it is
	Now     moment
	User    string
	Admin   bool
	Host    string
	Code    string
	Logout  bool
	render  func(name string, value any) string
	Content any // of pages that are not live
}

// Block shows one of the blocks.
func (v *view) Block(key string) template.HTML {
	for _, p := range v.Blocks {
		if p.Key == key {
			return template.HTML(v.render(p.Template, p.Value)) //nolint:gosec // it comes from a template
		}
	}
	return ""
}

// Rows shows those of a list.
func (v *view) Rows(name string) template.HTML {
	var rows strings.Builder
	for _, l := range v.Lists {
		for _, p := range l.Rows {
			if l.Name == name {
				rows.WriteString(v.render(p.Template, shownRow{p.Key, p.Value}))
			}
		}
	}
	return template.HTML(rows.String()) //nolint:gosec // it comes from a template
}

// shownRow is what the template of a row has.
type shownRow struct {
	Key string
	Row any
}
