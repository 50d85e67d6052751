package main

import (
	"cmp"
	"fmt"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// graph has the uses between the files of a package.
type graph struct {
	files []string
	names map[use]map[string]bool // names in each use
}

// use is of one file by another one, by their numbers.
type use struct{ from, to int }

// read finds the uses between the files of a package.
func read(p *packages.Package) *graph {
	g := &graph{names: map[use]map[string]bool{}}
	number := map[string]int{}
	for _, f := range p.Syntax {
		name := filepath.Base(p.Fset.Position(f.Package).Filename)
		if strings.HasSuffix(name, ".pb.go") || name == "doc.go" {
			continue
		}
		number[name] = len(g.files)
		g.files = append(g.files, name)
	}
	file := func(pos token.Pos) (int, bool) {
		i, ok := number[filepath.Base(p.Fset.Position(pos).Filename)]
		return i, ok
	}
	for id, o := range p.TypesInfo.Uses {
		if o.Pkg() != p.Types || !declaration(p, o) {
			continue
		}
		from, ok1 := file(id.Pos())
		to, ok2 := file(o.Pos())
		if !ok1 || !ok2 || from == to {
			continue
		}
		u := use{from, to}
		if g.names[u] == nil {
			g.names[u] = map[string]bool{}
		}
		g.names[u][o.Name()] = true
	}
	return g
}

// declaration reports whether other files can name o: it is at the top of the package, or a member of a type.
func declaration(p *packages.Package, o types.Object) bool {
	switch o := o.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return o.IsField() || o.Parent() == p.Types.Scope()
	default:
		return o.Parent() == p.Types.Scope()
	}
}

func (g *graph) count() int { return len(g.names) }

func (g *graph) uses(from, to int) bool { return g.names[use{from, to}] != nil }

// backUp returns the uses against an order of the files.
func (g *graph) backUp(order []int) []use {
	var up []use
	for i, below := range order {
		for _, above := range order[:i] {
			if g.uses(below, above) {
				up = append(up, use{below, above})
			}
		}
	}
	return up
}

func (g *graph) print(order []int, up []use, circles [][]int) {
	for _, i := range order {
		fmt.Printf("    %s\n", g.files[i])
	}
	for _, u := range up {
		var names []string
		for s := range g.names[u] {
			names = append(names, s)
		}
		slices.Sort(names)
		fmt.Printf("    up: %s -> %s (%s)\n", g.files[u.from], g.files[u.to], strings.Join(names, " "))
	}
	for _, c := range circles {
		fmt.Printf("    circle of %d:", len(c))
		for _, i := range c {
			fmt.Printf(" %s", g.files[i])
		}
		fmt.Println()
	}
}

// largest names the types with the most methods.
func largest(p *packages.Package) string {
	const many, most = 15, 3
	type row struct {
		name           string
		methods, files int
	}
	var rows []row
	for _, name := range p.Types.Scope().Names() {
		named, ok := p.Types.Scope().Lookup(name).Type().(*types.Named)
		if _, isType := p.Types.Scope().Lookup(name).(*types.TypeName); !isType || !ok || named.NumMethods() < many {
			continue
		}
		files := map[string]bool{}
		for m := range named.Methods() {
			files[p.Fset.Position(m.Pos()).Filename] = true
		}
		rows = append(rows, row{name, named.NumMethods(), len(files)})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.methods, a.methods) })
	var list []string
	for _, r := range rows[:min(most, len(rows))] {
		list = append(list, fmt.Sprintf("%s %d/%d", r.name, r.methods, r.files))
	}
	return strings.Join(list, ", ")
}
