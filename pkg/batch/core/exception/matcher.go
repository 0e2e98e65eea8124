package exception

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Matcher is a named class of errors of a job file's `errors` and `except`. Its errors also belong to its
// parent. A [BatchError] with its name as Class always belongs to it.
type Matcher struct {
	// Name is letters, digits and _.
	Name string
	// Parent is the wider class, or empty.
	Parent string
	Doc    string
	// Match judges by type and code (errors.As, errors.Is), never by text, for every branch of a joined error.
	// nil matches only children and name. It must be safe for concurrent use.
	Match func(err error) bool
	// New takes an argument: `sqlstate(40001)`. Its errors are not this matcher's. nil means no argument.
	New func(arg string) (match func(err error) bool, err error)
	// Wide: an argument for several things, such as 5xx, is less specific than the family's children; others
	// are the most specific. nil means none is wide.
	Wide func(arg string) bool
}

// Matchers of an application, immutable and safe for concurrent use.
type Matchers struct {
	nodes  []*node
	byName map[string]*node
}

type node struct {
	Matcher
	depth    int
	children []*node
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// NewMatchers reports duplicates, unknown parents, circles and invalid names together.
func NewMatchers(matchers ...Matcher) (*Matchers, error) {
	m := &Matchers{byName: map[string]*node{}}
	all := make([]*node, 0, len(matchers))
	var errs []error
	for _, matcher := range matchers {
		switch {
		case !identifier.MatchString(matcher.Name):
			errs = append(errs, fmt.Errorf("error class %q: its name is not an identifier", matcher.Name))
			continue
		case m.byName[matcher.Name] != nil:
			errs = append(errs, fmt.Errorf("error class %q is registered twice", matcher.Name))
			continue
		}
		n := &node{Matcher: matcher}
		m.byName[n.Name] = n
		all = append(all, n)
	}
	var roots []*node
	for _, n := range all {
		parent := m.byName[n.Parent]
		switch {
		case n.Parent == "":
			roots = append(roots, n)
		case parent == nil:
			errs = append(errs, fmt.Errorf("error class %q: its parent class %q does not exist", n.Name, n.Parent))
		default:
			parent.children = append(parent.children, n)
		}
	}
	m.place(roots, 1)
	for _, n := range all {
		if n.depth == 0 && m.circles(n) {
			errs = append(errs, fmt.Errorf("error class %q is its own ancestor", n.Name))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Matchers) place(nodes []*node, depth int) {
	for _, n := range nodes {
		n.depth = depth
		m.nodes = append(m.nodes, n)
		m.place(n.children, depth+1)
	}
}

func (m *Matchers) circles(n *node) bool {
	at := m.byName[n.Parent]
	for range m.byName {
		if at == nil || at == n {
			break
		}
		at = m.byName[at.Parent]
	}
	return at == n
}

// All has parents before children.
func (m *Matchers) All() []Matcher {
	list := make([]Matcher, len(m.nodes))
	for i, n := range m.nodes {
		list[i] = n.Matcher
	}
	return list
}

// Names are sorted; (...) follows one that needs an argument.
func (m *Matchers) Names() []string {
	names := make([]string, len(m.nodes))
	for i, n := range m.nodes {
		names[i] = n.Name
		if n.needsArgument() {
			names[i] += "(...)"
		}
	}
	slices.Sort(names)
	return names
}

// Check returns *UnknownMatcherError, or the argument's error.
func (m *Matchers) Check(name string) error {
	_, err := m.rule(name, false)
	return err
}

// Class is the most specific matcher's name; among several the BatchError's, else the first registered.
// Without one the BatchError's class, or "".
func (m *Matchers) Class(err error) string {
	if err == nil {
		return ""
	}
	own := ClassOf(err)
	var best *node
	for _, n := range m.nodes {
		deeper := best == nil || n.depth > best.depth || n.depth == best.depth && n.Name == string(own)
		if deeper && n.itself(err) {
			best = n
		}
	}
	if best == nil {
		return string(own)
	}
	return best.Name
}

// Is includes matchers below; false for an unknown name.
func (m *Matchers) Is(name string, err error) bool {
	n := m.byName[name]
	return n != nil && err != nil && n.matches(err)
}

// needsArgument: without one it matches no error.
func (n *node) needsArgument() bool { return n.New != nil && n.Match == nil && len(n.children) == 0 }

func (n *node) matches(err error) bool {
	return n.itself(err) || slices.ContainsFunc(n.children, func(c *node) bool { return c.matches(err) })
}

func (n *node) itself(err error) bool {
	named := anyOf(err, func(e error) bool {
		be, ok := e.(*BatchError) //nolint:errorlint // anyOf unwraps
		return ok && be.Class == Class(n.Name)
	})
	return named || n.Match != nil && anyBranch(err, n.Match)
}

func anyOf(err error, f func(error) bool) bool {
	for err != nil {
		if f(err) {
			return true
		}
		branches, next := unwrap(err)
		if slices.ContainsFunc(branches, func(b error) bool { return anyOf(b, f) }) {
			return true
		}
		err = next
	}
	return false
}

// Branch by branch: errors.As finds only the first of its type.
func anyBranch(err error, match func(error) bool) bool {
	if err == nil || match(err) {
		return err != nil
	}
	for err != nil {
		branches, next := unwrap(err)
		if len(branches) > 0 {
			return slices.ContainsFunc(branches, func(b error) bool { return anyBranch(b, match) })
		}
		err = next
	}
	return false
}

func unwrap(err error) (branches []error, next error) {
	switch e := err.(type) { //nolint:errorlint // this is the unwrapping
	case interface{ Unwrap() error }:
		return nil, e.Unwrap()
	case interface{ Unwrap() []error }:
		return e.Unwrap(), nil
	}
	return nil, nil
}

// UnknownMatcherError is a name without a matcher.
type UnknownMatcherError struct {
	Name  string
	Known []string
}

// Error lists them.
func (e *UnknownMatcherError) Error() string {
	return fmt.Sprintf("there is no error class %q (known: %s)", e.Name, strings.Join(e.Known, ", "))
}

func (m *Matchers) rule(text string, applies bool) (rule, error) {
	name, arg, hasArg, err := split(text)
	if err != nil {
		return rule{}, err
	}
	n := m.byName[name]
	switch {
	case n == nil:
		return rule{}, &UnknownMatcherError{Name: name, Known: m.Names()}
	case !hasArg && n.needsArgument():
		return rule{}, fmt.Errorf("error class %s needs an argument: %s(...)", name, name)
	case !hasArg:
		return rule{match: n.matches, rank: 2 * n.depth, applies: applies}, nil
	case n.New == nil:
		return rule{}, fmt.Errorf("error class %s has no argument", name)
	}
	match, err := n.New(arg)
	if err != nil {
		return rule{}, fmt.Errorf("error class %s: %w", text, err)
	}
	rank := exact
	if n.Wide != nil && n.Wide(arg) {
		rank = 2*n.depth + 1
	}
	return rule{match: func(err error) bool { return anyBranch(err, match) }, rank: rank, applies: applies}, nil
}

func split(text string) (name, arg string, hasArg bool, err error) {
	text = strings.TrimSpace(text)
	name, rest, hasArg := strings.Cut(text, "(")
	if !hasArg {
		return name, "", false, nil
	}
	arg, ok := strings.CutSuffix(rest, ")")
	if arg = strings.TrimSpace(arg); !ok || arg == "" {
		return "", "", false, fmt.Errorf("error class %q: write name(argument)", text)
	}
	return strings.TrimSpace(name), arg, true, nil
}

const exact = 1 << 30

type rule struct {
	match func(error) bool
	// rank is even for names: room for wide arguments between a family and its children.
	rank    int
	applies bool // false: an exception
}

func bySpecificity(a, b rule) int {
	if a.rank != b.rank {
		return cmp.Compare(b.rank, a.rank)
	}
	switch {
	case a.applies == b.applies:
		return 0
	case b.applies:
		return -1
	}
	return 1
}
