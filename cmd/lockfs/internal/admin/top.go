package admin

import (
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"lockfs/cmd/lockfs/internal/cli"
)

func topCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch locks, events, hosts and members in a terminal",
		Long: `Watch the cluster in a terminal until you press q. The top shows the leader, the
servers that answer, the spread of the clocks, unreachable hosts and alarms.
Below are locks (unreachable, stale and contended ones first), events, hosts and
members: switch with 1 to 4 or tab. Move with the arrow keys or j and k, and
filter with /.

` + whoSees,
		Example: "  lockfs top",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cli.IsTerminal(cmd.OutOrStdout()) {
				return errors.New("lockfs top needs a terminal; without one use `lockfs locks --watch`")
			}
			l := &lookout{flags: &flags, root: lookThrough(cmd, "")}
			go l.followEvents(cmd.Context())
			model := &top{look: func() desk { return l.look(cmd.Context()) }}
			_, err := tea.NewProgram(model, tea.WithContext(cmd.Context()), tea.WithOutput(cmd.OutOrStdout())).Run()
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

var _ tea.Model = (*top)(nil)

type lookAgain struct{}

func (m *top) Init() tea.Cmd { return func() tea.Msg { return m.look() } }

func (m *top) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case desk:
		m.seen = message.after(m.seen)
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
		case "1", "2", "3", "4":
			m.view, m.at = int(name[0]-'1'), 0
		case "tab":
			m.view, m.at = (m.view+1)%len(views), 0
		case "shift+tab":
			m.view, m.at = (m.view+len(views)-1)%len(views), 0
		}
	}
	m.at = max(0, min(m.at, len(m.chosen())-1))
	return nil
}

// search handles a key while the filter is typed.
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
