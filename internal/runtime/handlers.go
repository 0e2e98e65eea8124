package runtime

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// NamedHandler is a type's handler. New makes it, once per process with a
// worker.
type NamedHandler struct {
	Type string
	New  func() (task.Handler, error)
	// Off is how to switch it on; "" means that it is on.
	Off string
}

// NamedDecider is a decider that submissions name.
type NamedDecider struct {
	Name string
	New  func() (task.Decider, error)
}

// DefaultDecider is for submissions that name none.
const DefaultDecider = "backoff"

// Catalog lists this process's handlers and deciders. The zero value has the
// default decider.
type Catalog struct {
	handlers map[string]func() (task.Handler, error)
	deciders map[string]func() (task.Decider, error)
	off      map[string]string
}

// NewCatalog refuses names that are empty or used twice.
func NewCatalog(handlers []NamedHandler, deciders []NamedDecider) (*Catalog, error) {
	c := &Catalog{handlers: map[string]func() (task.Handler, error){}, deciders: map[string]func() (task.Decider, error){}, off: map[string]string{}}
	var errs []error
	for _, h := range handlers {
		errs = append(errs, put(c.handlers, "handler of tasks", h.Type, h.New))
	}
	for _, d := range deciders {
		errs = append(errs, put(c.deciders, "decider of tasks", d.Name, d.New))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, h := range handlers {
		if h.Off != "" {
			c.off[h.Type] = h.Off
			delete(c.handlers, h.Type)
		}
	}
	if c.deciders[DefaultDecider] == nil {
		c.deciders[DefaultDecider] = func() (task.Decider, error) { return task.Backoff{}, nil }
	}
	return c, nil
}

func put[T any](into map[string]func() (T, error), what, name string, make func() (T, error)) error {
	switch {
	case name == "" || make == nil:
		return fmt.Errorf("%s %q: it needs a name and a constructor", what, name)
	case into[name] != nil:
		return fmt.Errorf("%s %q: the name is used twice", what, name)
	}
	into[name] = make
	return nil
}

// Types returns the types of tasks that have a handler, sorted.
func (c *Catalog) Types() []string { return sortedNames(c.handlers) }

// HandlerOff returns how to switch a handler on; "" if it is on, or none.
func (c *Catalog) HandlerOff(taskType string) (how string) { return c.off[taskType] }

func (c *Catalog) lacks(taskType string) string {
	if how, off := c.off[taskType]; off {
		return fmt.Sprintf("the handler of tasks of type %q is disabled in this process: %s", taskType, how)
	}
	return fmt.Sprintf("tasks of type %q have no handler in this process (there are: %q)", taskType, c.Types())
}

// Deciders returns the names of the deciders, sorted.
func (c *Catalog) Deciders() []string { return sortedNames(c.deciders) }

func sortedNames[T any](m map[string]T) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *Catalog) handlersOf(types []string) (map[string]task.Handler, error) {
	made := map[string]task.Handler{}
	var errs []error
	for _, t := range types {
		construct, ok := c.handlers[t]
		if !ok {
			errs = append(errs, errors.New(c.lacks(t)))
			continue
		}
		h, err := construct()
		if err != nil {
			errs = append(errs, fmt.Errorf("handler of tasks of type %q: %w", t, err))
		}
		made[t] = h
	}
	return made, errors.Join(errs...)
}

type deciding map[string]task.Decider

func (c *Catalog) decidersMade() (deciding, error) {
	made := deciding{}
	var errs []error
	for name, construct := range c.deciders {
		d, err := construct()
		if err != nil {
			errs = append(errs, fmt.Errorf("decider of tasks %q: %w", name, err))
		}
		made[name] = d
	}
	return made, errors.Join(errs...)
}

// Decide returns the function that decides about tasks, never beyond the
// budget. If a named decider panics or is missing here, the task is given up:
// no other may repeat it.
func (c *Catalog) Decide() (taskports.Decide, error) {
	made, err := c.decidersMade()
	if err != nil {
		return nil, err
	}
	return made.decide, nil
}

func (d deciding) decide(c task.Case) (policy string, decision task.Decision) {
	if c.Random == 0 {
		c.Random = rand.Float64() //nolint:gosec // no secret
	}
	name := c.Decider
	if name == "" {
		name = DefaultDecider
	}
	chosen, ok := d[name]
	if !ok {
		if why := c.Budget.Exhausted(c.Spent); why != "" {
			return "budget", task.MarkDead(why)
		}
		return name, task.MarkDead(fmt.Sprintf("this process does not have the decider %q, which alone may decide about another attempt", name))
	}
	if err := panics.GuardApart(func() error { decision = chosen.Decide(c); return nil }); err != nil {
		decision = task.MarkDead(fmt.Sprintf("the decider %q failed, and no other decider replaces it: %v", name, err))
	}
	return name, decision.Within(c)
}

// Its worker stopped: the next attempt is made at once, within the budget.
func stopping(c task.Case) (policy string, decision task.Decision) {
	return "stopping", task.Retry(0, task.ErrStopping.Error()).Within(c)
}
