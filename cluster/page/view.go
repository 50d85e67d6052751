package page

import (
	"html/template"
	"strings"
)

// content is the variable part of a page, with its parameters.
type content struct {
	Title  string
	Asked  any
	Blocks []piece
	Lists  []list
}

// piece is a part of a page: a template and its data. It has changed if these are not equal.
type piece struct {
	Key      string
	Template string
	Value    any
}

type list struct {
	Name string
	Rows []piece
}

// rowsShown is the number of rows on a page of a list.
const rowsShown = 50

// pager has the links to other pages of a list.
type pager struct {
	Page, Pages    int
	Previous, Next string // empty: none
}

type link struct{ Name, Path, Title string }

// Pages returns the menu in its order.
func (*view) Pages() []link {
	return []link{{"locks", "/", "Locks"}, {"events", "/events", "Events"}, {"hosts", "/hosts", "Hosts"}, {"members", "/members", "Members"}}
}

type view struct {
	*content
	Kind    string
	Live    string // address of the stream; empty: no live updates
	Now     moment
	User    string
	Admin   bool
	Host    string
	Code    string
	Logout  bool
	render  func(name string, value any) string
	Content any // of pages without live updates
}

// Block renders a block.
func (v *view) Block(key string) template.HTML {
	for _, p := range v.Blocks {
		if p.Key == key {
			return template.HTML(v.render(p.Template, p.Value)) //nolint:gosec // it comes from a template
		}
	}
	return ""
}

// Rows renders the rows of a list.
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

type shownRow struct {
	Key string
	Row any
}
