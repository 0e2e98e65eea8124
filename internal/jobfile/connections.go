package jobfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// connections counts the connections of one database that a step holds at once, and takes for a moment.
type connections struct{ group, own, kept, within, between int }

// need is the number of connections that the step needs at once, with or without its transaction. A database
// with one writer has connections only for readers in its pool.
func (n connections) need(singleWriter bool) int {
	if singleWriter {
		return n.kept + n.between
	}
	return n.group + n.kept + max(n.own+n.within, n.between)
}

// checkConnections refuses a step that would wait for itself because it needs more connections at once than a
// pool has (rule O4).
func (c *compiler) checkConnections(s *stepDef) {
	all := map[string]*connections{}
	of := func(name string) *connections {
		if all[name] == nil {
			all[name] = &connections{}
		}
		return all[name]
	}
	own := c.database(s)
	c.countTransactions(s, of)
	for _, u := range withNested(s.components()...) {
		connector, ok := u.cfg.(registry.Connector)
		if !ok {
			continue
		}
		for _, taken := range connector.Connections() {
			name := cmp.Or(taken.Database, c.file.model.Database)
			if taken.OfStep {
				name = own
			}
			switch taken.Use {
			case registry.Kept:
				of(name).kept++
			case registry.Within:
				of(name).within = 1
			case registry.Between:
				of(name).between = 1
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		db, err := c.deps.Provider.Database(name)
		if err != nil {
			continue // reported
		}
		n := *all[name]
		need := n.need(db.SingleWriter())
		if size, bounded := poolOf(db); bounded && need > size {
			c.problems.Add(s.model.Node.KeyOf("step"), fmt.Sprintf("step %s needs %d connections of database %s at once, and its pool has %d (%s): it would wait for itself",
				s.model.Step, need, name, size, n.text(db.SingleWriter())), fmt.Sprintf("raise max_open of the database to %d (and the size of a pool of the application), or split the step", need))
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

// countTransactions counts the transaction of the atomic group that the step is in, and its own.
func (c *compiler) countTransactions(s *stepDef, of func(name string) *connections) {
	attr, inGroup := c.attr(s), false
	if parent := s.element.list.parent; parent != nil && parent.kind == atomicKind {
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
	if s.reader != nil || s.tasklet != nil {
		of(c.database(s)).own = 1
	}
}

// text describes the use of the connections.
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
		add(n.within, "in that transaction, beside it")
	} else {
		add(n.between, "to read pages")
	}
	return strings.Join(words, ", ")
}
