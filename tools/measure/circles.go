package main

import (
	"go/ast"
	"math"
)

// uses are the files of a package, and which other file each one uses: by a name that the other
// one declares at the top level. Methods and fields do not count.
type uses map[string]map[string]bool

// circles measures how the files of each package of the product use each other: the largest
// circle of files, and the share of uses, in percent, that are within circles.
func circles(t *tree) []measure {
	largest, share := map[string]float64{}, map[string]float64{}
	for dir, u := range usesByRoom(t) {
		group := components(u)
		size := map[int]int{}
		for _, g := range group {
			size[g]++
		}
		for _, n := range size {
			largest[dir] = max(largest[dir], float64(n))
		}
		all, within := 0, 0
		for from, tos := range u {
			for to := range tos {
				all++
				if group[from] == group[to] {
					within++
				}
			}
		}
		share[dir] = math.Round(100 * float64(within) / float64(max(1, all)))
	}
	var measures []measure
	for _, m := range byName("circle", largest) {
		measures = append(measures, m)
		if m.value > 3 { // the share of a small circle says nothing
			measures = append(measures, measure{"in circles", m.subject, share[m.subject]})
		}
	}
	return measures
}

func usesByRoom(t *tree) map[string]uses {
	declared := map[string]map[string]string{} // dir -> name -> file
	for _, f := range t.product() {
		if declared[f.dir] == nil {
			declared[f.dir] = map[string]string{}
		}
		f.names(func(name string) { declared[f.dir][name] = f.path })
	}
	rooms := map[string]uses{}
	for _, f := range t.product() {
		if rooms[f.dir] == nil {
			rooms[f.dir] = uses{}
		}
		rooms[f.dir][f.path] = usedBy(f, declared[f.dir])
	}
	return rooms
}

// usedBy returns the other files of the package that a file uses.
func usedBy(f *source, declared map[string]string) map[string]bool {
	used, skip := map[string]bool{}, map[*ast.Ident]bool{f.ast.Name: true} // a package may have the name of a type
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			skip[n.Sel] = true
		case *ast.KeyValueExpr:
			if k, ok := n.Key.(*ast.Ident); ok {
				skip[k] = true
			}
		case *ast.FuncDecl:
			if n.Recv != nil { // the name of a method
				skip[n.Name] = true
			}
		case *ast.Field:
			for _, k := range n.Names {
				skip[k] = true
			}
		case *ast.Ident:
			if to, ok := declared[n.Name]; ok && n.Name != "_" && to != f.path && !skip[n] {
				used[to] = true
			}
		}
		return true
	})
	return used
}

// components numbers the strongly connected components (Tarjan's algorithm).
func components(graph uses) map[string]int {
	c := connect{graph: graph, index: map[string]int{}, low: map[string]int{}, on: map[string]bool{}, group: map[string]int{}}
	for v := range graph {
		if c.index[v] == 0 {
			c.visit(v)
		}
	}
	return c.group
}

type connect struct {
	graph      uses
	index, low map[string]int
	on         map[string]bool
	stack      []string
	groups     int
	group      map[string]int
}

func (c *connect) visit(v string) {
	c.index[v] = len(c.index) + 1
	c.low[v] = c.index[v]
	c.stack, c.on[v] = append(c.stack, v), true
	for w := range c.graph[v] {
		if c.index[w] == 0 {
			c.visit(w)
			c.low[v] = min(c.low[v], c.low[w])
		} else if c.on[w] {
			c.low[v] = min(c.low[v], c.index[w])
		}
	}
	if c.low[v] != c.index[v] {
		return
	}
	c.groups++
	for done := false; !done; {
		w := c.stack[len(c.stack)-1]
		c.stack, c.on[w] = c.stack[:len(c.stack)-1], false
		c.group[w] = c.groups
		done = w == v
	}
}
