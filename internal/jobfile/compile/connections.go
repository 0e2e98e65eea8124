package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/trait"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type connections struct{ group, own, kept, within, between int }

// A database with one writer has connections only for readers in its pool.
func (n connections) need(singleWriter bool) int {
	if singleWriter {
		return n.kept + n.between
	}
	return n.group + n.kept + max(n.own+n.within, n.between)
}

// checkConnections refuses a step that would wait for itself because it needs more connections at
// once than a pool has (rule O4).
func (c *compiler) checkConnections(s *tree.Step) {
	if neverRuns(s.Element) {
		return
	}
	all := connectionsOf{}
	c.countTransactions(s, all.of)
	c.countComponents(s, all, s.Components())
	for _, name := range slices.Sorted(maps.Keys(all)) {
		db, err := c.deps.Provider.Database(name)
		if err != nil {
			continue // reported
		}
		n := *all[name]
		need := n.need(db.SingleWriter())
		if size, bounded := poolOf(db); bounded && need > size {
			c.problems.Add(s.Model.Node.KeyOf("step"), fmt.Sprintf("step %s needs %d connections of database %s at once, and its pool has %d (%s): it would wait for itself",
				s.Model.Step, need, name, size, n.text(db.SingleWriter())), fmt.Sprintf("raise max_open of the database to %d (and the size of a pool of the application), or split the step", need))
		}
	}
}

func neverRuns(e *tree.Element) bool {
	for ; e != nil; e = e.List.Parent {
		if e.When != nil && isNever(e.When) {
			return true
		}
	}
	return false
}

type connectionsOf map[string]*connections

func (all connectionsOf) of(name string) *connections {
	if all[name] == nil {
		all[name] = &connections{}
	}
	return all[name]
}

func (c *compiler) countComponents(s *tree.Step, all connectionsOf, uses []*tree.ComponentUse) {
	for _, u := range uses {
		switch {
		case u == nil:
			continue
		case u.AtOpen: // it has closed its connections before the next component is opened
			passing := connectionsOf{}
			c.countTaken(s, passing, u)
			c.countComponents(s, passing, u.Inner)
			for name, n := range passing {
				all.of(name).between = max(all.of(name).between, n.kept+max(n.within, n.between))
			}
			continue
		}
		c.countTaken(s, all, u)
		c.countComponents(s, all, u.Inner)
	}
}

func (c *compiler) countTaken(s *tree.Step, all connectionsOf, u *tree.ComponentUse) {
	connector, ok := u.Cfg.(trait.Connector)
	if !ok {
		return
	}
	for _, taken := range connector.Connections() {
		name := cmp.Or(taken.Database, c.file.Model.Database)
		if taken.OfStep {
			name = c.file.DatabaseOf(s)
		}
		n := all.of(name)
		switch taken.Use {
		case trait.Kept:
			n.kept++
		case trait.Within:
			n.within = 1
		case trait.Between:
			n.between = max(n.between, 1)
		}
	}
}

func poolOf(db tx.Database) (size int, bounded bool) {
	sizer, ok := db.(step.PoolSizer)
	if !ok {
		return 0, false
	}
	return sizer.PoolSize(), sizer.PoolSize() > 0
}

func (c *compiler) countTransactions(s *tree.Step, of func(name string) *connections) {
	attr, inGroup := c.file.AttrOf(s), false
	if parent := s.Element.List.Parent; parent != nil && parent.Kind == language.AtomicKind {
		inGroup = true
		of(c.groupDatabase(parent)).group = 1
	}
	switch attr.Propagation {
	case tx.NotSupported, tx.Never, tx.Supports, tx.Mandatory:
		return
	case tx.RequiresNew:
	default:
		if inGroup {
			return
		}
	}
	if s.Reader != nil || s.Tasklet != nil {
		of(c.file.DatabaseOf(s)).own = 1
	}
}

func (n connections) text(singleWriter bool) string {
	var words []string
	add := func(count int, what string) {
		if count > 0 {
			words = append(words, fmt.Sprintf("%d %s", count, what))
		}
	}
	if !singleWriter {
		add(n.group, "for the transaction of the group")
	}
	add(n.kept, "kept open while rows are read")
	if !singleWriter && n.own+n.within >= n.between {
		add(n.own, "for the transaction of the step")
		add(n.within, "to read during that transaction")
	} else {
		add(n.between, "to read pages and rows to look up")
	}
	return strings.Join(words, ", ")
}
