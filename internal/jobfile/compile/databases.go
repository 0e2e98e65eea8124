package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/trait"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// checkDatabases also checks the transaction attributes (rule T4).
func (c *compiler) checkDatabases() {
	root := c.file.Doc.Root
	if _, err := c.deps.Provider.Database(c.file.Model.Database); err != nil {
		at := root.Get("database")
		if at == nil {
			at = root.KeyOf("job")
		}
		c.problems.Add(at, err.Error(), "")
		return
	}
	for _, s := range c.file.Steps {
		switch {
		case s.Child == nil:
			c.checkStepDatabases(s)
		case s.Child.File == nil:
			c.problems.Add(s.Child.Model.Node.Find("file"), s.Child.Missing, "")
		}
	}
	if c.file.Flow != nil {
		c.file.Flow.Walk(func(e *tree.Element) {
			if e.Kind == language.AtomicKind {
				c.checkGroup(e)
			}
		})
	}
}

func (c *compiler) checkStepDatabases(s *tree.Step) {
	c.checkHandler(s)
	good := true
	for _, u := range tree.WithNested(s.Components()...) {
		name, has := u.Database()
		if !has || name == "" {
			continue
		}
		if _, err := c.deps.Provider.Database(name); err != nil {
			c.problems.Add(u.Find("database"), u.What+": "+err.Error(), "")
			good = false
		}
	}
	if !good {
		return
	}
	checkMySQL(c.file, s, c.problems, c.isMySQL)
	db, err := c.deps.Provider.Database(c.file.DatabaseOf(s))
	if err != nil {
		return // reported
	}
	if t := c.file.Transaction(s); t != nil {
		c.checkAttr(t, db, c.file.AttrOf(s))
	}
	c.checkConnections(s)
	if p := s.Model.Partition; p != nil && p.Workers != nil && *p.Workers > 0 {
		if err := step.CheckPool(db, int(*p.Workers)); err != nil {
			c.problems.Add(p.Node.Get("workers"), "workers: "+err.Error(), "")
		}
	}
}

// CheckMySQL refuses components that do not work on MySQL, and keys of others, in a file and in its child jobs (rule
// MY1).
func CheckMySQL(f *tree.File, isMySQL func(database string) bool) error {
	problems := f.Doc.NewCollector()
	var errs []error
	for _, s := range f.Steps {
		checkMySQL(f, s, problems, isMySQL)
		if s.Child != nil && s.Child.File != nil {
			errs = append(errs, CheckMySQL(s.Child.File, isMySQL))
		}
	}
	return errors.Join(append(errs, problems.Err())...)
}

func checkMySQL(f *tree.File, s *tree.Step, problems *yamlfile.Collector, isMySQL func(database string) bool) {
	for _, u := range tree.WithNested(s.Components()...) {
		at, err := u.Node, errors.New("it does not work there")
		if works, ok := u.Cfg.(trait.OnMySQL); ok {
			err = works.OnMySQL()
		}
		if wrong, ok := errors.AsType[*registry.ConfigError](err); ok {
			at = u.KeyNode(wrong.Key)
		}
		if err == nil {
			continue
		}
		for _, name := range databasesOf(f, s, u) {
			if isMySQL(name) {
				problems.Add(at, fmt.Sprintf("%s: database %s is MySQL: %v", u.What, cmp.Or(name, tx.Default), err), "see docs/howto/mysql.md (rule MY1)")
				break
			}
		}
	}
}

func (c *compiler) isMySQL(database string) bool {
	db, err := c.deps.Provider.Database(database)
	return err == nil && db.Dialect() == tx.MySQL
}

func databasesOf(f *tree.File, s *tree.Step, u *tree.ComponentUse) (names []string) {
	if name, has := u.Database(); has {
		names = append(names, cmp.Or(name, f.Model.Database))
	}
	connector, ok := u.Cfg.(trait.Connector)
	if !ok {
		return names
	}
	for _, taken := range connector.Connections() {
		name := cmp.Or(taken.Database, f.Model.Database)
		if taken.OfStep {
			name = f.DatabaseOf(s)
		}
		names = append(names, name)
	}
	return names
}

func (c *compiler) checkHandler(s *tree.Step) {
	if s.Tasks == nil || c.deps.Tasks == nil {
		return
	}
	if known, closed := c.deps.Tasks.Handlers(); closed {
		checkHandler(c.problems, s, c.deps.Tasks, known)
	}
}

func (c *compiler) checkAttr(t *language.Transaction, db tx.Database, attr tx.Attr) {
	err := db.Check(attr)
	if err == nil {
		return
	}
	at := t.Node
	for _, key := range []string{"propagation", "read_only", "isolation"} {
		for _, node := range []*yamlfile.Node{c.file.Model.Defaults.Node.Get("transaction"), t.Node} {
			if written := node.Get(key); written != nil {
				at = written
			}
		}
	}
	c.problems.Add(at, "transaction: "+err.Error(), "")
}

func (c *compiler) checkGroup(e *tree.Element) {
	name := c.groupDatabase(e)
	db, err := c.deps.Provider.Database(name)
	if err != nil {
		return // reported
	}
	if t := c.file.GroupTransaction(e); t != nil {
		c.checkAttr(t, db, t.Attr())
	}
	for _, inner := range e.Lists[0].Elements {
		s := inner.Step
		if s == nil || s.Model == nil {
			continue
		}
		at := s.Model.Node.KeyOf("step")
		if t := s.Model.Transaction; t != nil && t.Node.Get("propagation") != nil {
			at = t.Node.Get("propagation")
		}
		attr, own := c.file.AttrOf(s), c.file.DatabaseOf(s)
		switch {
		case c.joinsGroup(s) && own != name:
			c.problems.Add(at, fmt.Sprintf("the steps of an atomic group work in one database, and here are %s and %s", name, own), "a step with propagation REQUIRES_NEW, NOT_SUPPORTED or NEVER may work in another one")
		case attr.Propagation == tx.Never && own == name:
			c.problems.Add(at, "propagation NEVER fails in an atomic group, which has a transaction", "NOT_SUPPORTED runs without it")
		case attr.Propagation == tx.RequiresNew && own == name && db.SingleWriter() && !attr.ReadOnly:
			c.problems.Add(at, fmt.Sprintf("propagation REQUIRES_NEW in an atomic group: database %s has one writer, and the group's transaction holds it", name), "REQUIRED joins the group's transaction, NESTED makes a savepoint in it")
		}
	}
}

func (c *compiler) groupDatabase(e *tree.Element) string {
	for _, inner := range e.Lists[0].Elements {
		if inner.Step != nil && c.joinsGroup(inner.Step) {
			return c.file.DatabaseOf(inner.Step)
		}
	}
	return c.file.Model.Database
}

func (c *compiler) joinsGroup(s *tree.Step) bool {
	switch c.file.AttrOf(s).Propagation {
	case tx.NotSupported, tx.Never, tx.RequiresNew:
		return false
	case tx.Required, tx.Nested, tx.Supports, tx.Mandatory:
	}
	return true
}

// CheckHandlers looks for task handlers that this process lacks: the error has those that no
// program can have, elsewhere the others.
func CheckHandlers(f *tree.File, types HandlerTypes) (elsewhere yamlfile.Problems, err error) {
	known, closed := types.Handlers()
	problems := f.Doc.NewCollector()
	var wrong yamlfile.Problems
	for _, s := range f.Steps {
		switch {
		case s.Tasks != nil:
			checkHandler(problems, s, types, known)
		case s.Child != nil && s.Child.File != nil:
			others, err := CheckHandlers(s.Child.File, types)
			elsewhere = append(elsewhere, others...)
			if more, is := errors.AsType[yamlfile.Problems](err); is {
				wrong = append(wrong, more...)
			}
		}
	}
	own, _ := errors.AsType[yamlfile.Problems](problems.Err())
	if !closed {
		return append(own, elsewhere...), nil
	}
	if wrong = append(own, wrong...); len(wrong) > 0 {
		return nil, wrong
	}
	return nil, nil
}

func checkHandler(problems *yamlfile.Collector, s *tree.Step, types HandlerTypes, known []string) {
	handler, at := s.Tasks.Model.Handler, s.Tasks.Model.Node.Find("handler")
	if slices.Contains(known, handler) {
		return
	}
	if how := types.HandlerOff(handler); how != "" {
		problems.Add(at, fmt.Sprintf("the handler %s of tasks is switched off", handler), how)
		return
	}
	problems.Add(at, fmt.Sprintf("there is no handler %s of tasks in this application", handler), yamlfile.Suggest(handler, known))
}

// HasTasks reports whether the file, or a child job's file at any depth, has a step of tasks.
func HasTasks(f *tree.File) bool {
	return slices.ContainsFunc(f.Steps, func(s *tree.Step) bool {
		return s.Tasks != nil || s.Child != nil && s.Child.File != nil && HasTasks(s.Child.File)
	})
}
