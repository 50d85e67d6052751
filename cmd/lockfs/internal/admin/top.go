package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/lockjson"
)

func topCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show locks live in a terminal, trouble first",
		Long: `Show the leader and the locks, and go on showing them, until q is pressed: those first that are unreachable, stale, or waited for.
Up and down, or k and j, move through them; / narrows them to those that have some words in path, holder, host or state.

` + whoSees,
		Example: "  lockfs top",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cli.IsTerminal(cmd.OutOrStdout()) {
				return errors.New("it needs a terminal; elsewhere see `lockfs locks --watch`")
			}
			look := func() desk {
				d := desk{at: time.Now()}
				if d.locks, d.err = locksFor(cmd, &flags, "", ""); d.err == nil {
					d.head, d.err = headline(cmd.Context(), &flags)
				}
				return d
			}
			_, err := tea.NewProgram(&top{look: look}, tea.WithContext(cmd.Context()), tea.WithOutput(cmd.OutOrStdout())).Run()
			if errors.Is(err, tea.ErrProgramKilled) && cmd.Context().Err() != nil {
				return nil
			}
			return err
		},
	}
	flags.Add(cmd.Flags())
	cmd.Flags().Lookup("json").Hidden = true
	return cmd
}

// headline says in a line how the cluster is.
func headline(ctx context.Context, flags *cli.ClusterFlags) (line string, err error) {
	err = withAdmin(ctx, flags, func(ctx context.Context, admin *cluster.Admin) error {
		nodes, err := admin.Status(ctx, false)
		if err != nil {
			return err
		}
		answer := 0
		for _, node := range nodes {
			if node.Err == nil {
				answer++
			}
		}
		s := summarize(nodes)
		line = fmt.Sprintf("leader %s, term %d, %d of %d members answer", cmp.Or(s.Leader, "(none is known)"), s.Term, answer, len(nodes))
		return nil
	})
	return line, err
}

// desk is what was seen at one moment.
type desk struct {
	at    time.Time
	head  string
	locks []lockjson.Lock
	err   error
}

// top is the model of `lockfs top`.
type top struct {
	look          func() desk
	seen          desk
	width, height int
	at            int // index of the first lock that is shown
	words         string
	typing        bool // of words
}

var _ tea.Model = (*top)(nil)

type lookAgain struct{}

// Init is part of tea.Model.
func (m *top) Init() tea.Cmd { return func() tea.Msg { return m.look() } }

// Update is part of tea.Model.
func (m *top) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case desk:
		if message.err != nil {
			message.locks, message.head = m.seen.locks, m.seen.head // what was seen last is better than nothing
		}
		slices.SortStableFunc(message.locks, byTrouble)
		m.seen = message
		return m, tea.Tick(watchInterval, func(time.Time) tea.Msg { return lookAgain{} })
	case lookAgain:
		return m, m.Init()
	case tea.KeyPressMsg:
		return m, m.press(message)
	}
	return m, nil
}

func (m *top) press(key tea.KeyPressMsg) tea.Cmd {
	if name := key.String(); m.typing && name != "ctrl+c" {
		m.search(name, key.Text)
	} else {
		switch name {
		case "q", "ctrl+c":
			return tea.Quit
		case "/":
			m.typing = true
		case "j", "down":
			m.at++
		case "k", "up":
			m.at--
		case "pgdown", "space":
			m.at += m.room()
		case "pgup":
			m.at -= m.room()
		case "home":
			m.at = 0
		}
	}
	m.at = max(0, min(m.at, len(m.chosen())-1))
	return nil
}

// search takes a key while words are typed.
func (m *top) search(name, text string) {
	switch name {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.words = false, ""
	case "backspace":
		if runes := []rune(m.words); len(runes) > 0 {
			m.words = string(runes[:len(runes)-1])
		}
	default:
		m.words += text
		m.at = 0
	}
}

// room is how many locks there is room for, besides three lines above and one below.
func (m *top) room() int { return max(1, m.height-4) }

// chosen are the locks that have all of the words.
func (m *top) chosen() []lockjson.Lock {
	words := strings.Fields(strings.ToLower(m.words))
	return slices.DeleteFunc(slices.Clone(m.seen.locks), func(l lockjson.Lock) bool {
		text := strings.ToLower(strings.Join([]string{l.Path, l.Holder, l.Host, l.State, l.Format}, "\n"))
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
}

// byTrouble has those first that somebody should look at.
func byTrouble(a, b lockjson.Lock) int {
	rank := func(l lockjson.Lock) int {
		switch {
		case l.State == "unreachable":
			return 0
		case l.State == "stale":
			return 1
		case waiters(l) > 0:
			return 2
		}
		return 3
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(waiters(b), waiters(a)), strings.Compare(a.Path, b.Path))
}

func waiters(l lockjson.Lock) (count int) {
	for _, a := range l.Advisory {
		if a.State == lockjson.AdvisoryWaiting || a.State == lockjson.AdvisoryInterrupted {
			count++
		}
	}
	return count
}

// View is part of tea.Model.
func (m *top) View() tea.View {
	view := tea.NewView(m.text())
	view.AltScreen = true
	return view
}

func (m *top) text() string {
	locks := m.chosen()
	var lines []string
	head := m.seen.head
	switch {
	case m.seen.err != nil:
		head = "no answer: " + cli.Text(m.seen.err.Error())
	case m.seen.at.IsZero():
		head = "looking"
	}
	lines = append(lines, head, fmt.Sprintf("%s  %d locks%s", m.seen.at.Format(time.TimeOnly), len(locks), m.searched()))
	pathWidth := max(20, m.width-60)
	row := func(path, state, waiting, token, age, holder string) string {
		return fmt.Sprintf("%s  %-11s %7s %9s %9s  %s", fit(path, pathWidth), state, waiting, token, age, holder)
	}
	lines = append(lines, row("PATH", "STATE", "WAITING", "TOKEN", "AGE", "HOLDER"))
	for _, l := range locks[min(m.at, len(locks)):min(m.at+m.room(), len(locks))] {
		waiting := ""
		if count := waiters(l); count > 0 {
			waiting = fmt.Sprint(count)
		}
		lines = append(lines, row(cli.Word(l.Path), cmp.Or(l.State, "-"), waiting, fmt.Sprint(l.Token), time.Duration(l.Age*float64(time.Second)).String(), lockHolder(l)))
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(fit(line, max(m.width, 40)), " ")
	}
	return strings.Join(append(lines, "q quit  / narrow  j k scroll"), "\n")
}

func (m *top) searched() string {
	switch {
	case m.typing:
		return "  /" + cli.Text(m.words) + "_"
	case m.words != "":
		return "  with " + cli.Text(m.words)
	}
	return ""
}

// fit makes a text as wide as it is to be, of characters that are one wide.
func fit(text string, width int) string {
	runes := []rune(text)
	if len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text + strings.Repeat(" ", width-len(runes))
}
