package expand

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

const (
	maxExpanded = 100_000
	maxChain    = 20
)

type expander struct {
	problems  *yamlfile.Collector
	clock     template.Clock
	templates map[string]*templateDef
	names     []string
	size      int
	full      bool // size was too much
	broken    bool // a use is wrong
}

// Templates replaces every use of a template by its elements; false if a use is wrong.
func Templates(doc *yamlfile.Document, clock template.Clock, problems *yamlfile.Collector) bool {
	root := doc.Root
	if root.Kind != yamlfile.Map {
		return true
	}
	x := &expander{problems: problems, clock: clock, templates: map[string]*templateDef{}}
	x.declareTemplates(root.Get(templatesKey))
	changed := root.Get(templatesKey) != nil
	var entries []yamlfile.Entry
	for _, e := range root.Entries {
		switch e.Key.Text {
		case templatesKey:
			continue
		case "flow", "finally":
			if list := x.list(e.Value, nil); list != e.Value {
				e.Value, changed = list, true
			}
		}
		entries = append(entries, e)
	}
	if changed {
		doc.Root = root.WithEntries(entries)
	}
	return !x.broken
}

func (x *expander) list(n *yamlfile.Node, chain []string) *yamlfile.Node {
	if n.Kind != yamlfile.List {
		return n
	}
	changed := false
	var items []*yamlfile.Node
	for _, item := range n.Items {
		if isUse(item) {
			items = append(items, x.use(item, chain)...)
			changed = true
			continue
		}
		expanded := x.inside(item, chain)
		changed = changed || expanded != item
		items = append(items, expanded)
	}
	if !changed {
		return n
	}
	return n.WithItems(items)
}

func (x *expander) inside(n *yamlfile.Node, chain []string) *yamlfile.Node {
	changed := false
	entries := slices.Clone(n.Entries)
	for i, e := range entries {
		inner := e.Value
		switch e.Key.Text {
		case "steps":
			inner = x.list(e.Value, chain)
		case "branches":
			inner = x.branches(e.Value, chain)
		}
		changed = changed || inner != e.Value
		entries[i].Value = inner
	}
	if !changed {
		return n
	}
	return n.WithEntries(entries)
}

func (x *expander) branches(n *yamlfile.Node, chain []string) *yamlfile.Node {
	changed := false
	lists := slices.Clone(n.Items)
	for i, branch := range lists {
		lists[i] = x.list(branch, chain)
		changed = changed || lists[i] != branch
	}
	if !changed {
		return n
	}
	return n.WithItems(lists)
}

func isUse(n *yamlfile.Node) bool {
	if n.Get("use") != nil {
		return true
	}
	hasKind := slices.ContainsFunc(n.Entries, func(e yamlfile.Entry) bool { return language.IsElementKind(e.Key.Text) })
	return n.Kind == yamlfile.Map && !hasKind && (n.Get("for_each") != nil || n.Get("with") != nil)
}

func (x *expander) use(n *yamlfile.Node, chain []string) []*yamlfile.Node {
	elements, good := x.used(n, chain)
	x.broken = x.broken || !good
	return elements
}

func (x *expander) used(n *yamlfile.Node, chain []string) ([]*yamlfile.Node, bool) {
	for _, e := range n.Entries {
		if language.IsElementKind(e.Key.Text) {
			x.problems.Add(e.Key, "an element has one kind, and here are use and "+e.Key.Text, "make it two elements; the name of a flow around a template is `as`")
			return nil, false
		}
	}
	var m language.Use
	d := &yamlfile.Decoder{Collector: x.problems, Forms: language.Forms(), Scalar: template.Fixed(x.problems), Meant: meantTemplate}
	if !d.Decode(n, "a use", reflect.ValueOf(&m).Elem()) {
		return nil, false
	}
	at := n.Get("use")
	t := x.templates[m.Use]
	switch {
	case t == nil:
		hint := yamlfile.Suggest(m.Use, x.names)
		if len(x.names) == 0 {
			hint = "declare it under `templates`, or include the file that does"
		}
		x.problems.Add(at, fmt.Sprintf("there is no template %s", m.Use), hint)
		return nil, false
	case slices.Contains(chain, m.Use):
		x.problems.Add(at, "a template would use itself: "+strings.Join(append(slices.Clone(chain[slices.Index(chain, m.Use):]), m.Use), " -> "), "leave one of the uses out")
		return nil, false
	case len(chain) >= maxChain:
		x.problems.Add(at, fmt.Sprintf("templates use templates more than %d deep", maxChain), "write the steps of the inner templates directly")
		return nil, false
	case t.steps == nil:
		return nil, false // reported
	}
	sets, good := x.argumentSets(n, &m)
	if !good {
		return nil, false
	}
	var lists []*yamlfile.Node
	for _, set := range sets {
		list, ok := x.instance(t, n, set, append(slices.Clone(chain), m.Use))
		good = good && ok
		lists = append(lists, list)
	}
	if !good {
		return nil, false
	}
	return x.arrange(n, &m, lists)
}

func (x *expander) argumentSets(n *yamlfile.Node, m *language.Use) ([][]yamlfile.Entry, bool) {
	var common []yamlfile.Entry
	if with := m.With.Node; with != nil {
		if with.Kind != yamlfile.Map {
			x.problems.Add(with, "with takes "+yamlfile.Map.String()+", not "+with.Kind.String(), "write the arguments by name: with: {table: customer}")
			return nil, false
		}
		common = with.Entries
	}
	each := m.ForEach.Node
	switch {
	case each == nil && m.Parallel != nil:
		x.problems.Add(n.KeyOf("parallel"), "parallel is for a use with for_each", "leave it out, or give for_each a list of arguments")
		return nil, false
	case each == nil:
		return [][]yamlfile.Entry{common}, true
	case each.Kind != yamlfile.List || len(each.Items) == 0:
		x.problems.Add(each, "for_each takes a list of arguments", "such as [{table: customer}, {table: account}]")
		return nil, false
	}
	var sets [][]yamlfile.Entry
	good := true
	for _, item := range each.Items {
		if item.Kind != yamlfile.Map {
			x.problems.Add(item, "an entry of for_each has "+yamlfile.Map.String(), "write the arguments by name: {table: "+item.Text+"}")
			good = false
			continue
		}
		sets = append(sets, append(slices.Clone(common), item.Entries...))
	}
	return sets, good
}

func (x *expander) instance(t *templateDef, use *yamlfile.Node, given []yamlfile.Entry, chain []string) (*yamlfile.Node, bool) {
	values, good := x.arguments(t, use.KeyOf("use"), given)
	if !good || x.full {
		return nil, false
	}
	of := &instance{expander: x, template: t, use: &yamlfile.Use{What: "use " + t.name, At: use}, values: values}
	steps := of.steps()
	if x.size += steps.Size(); x.size > maxExpanded {
		x.full = true
		x.problems.Add(use, fmt.Sprintf("the templates of the file stand for more than %d values", maxExpanded), "use fewer, or split the job")
		return nil, false
	}
	if of.failed {
		return nil, false
	}
	return x.list(steps, chain), true
}

func (x *expander) arrange(n *yamlfile.Node, m *language.Use, lists []*yamlfile.Node) ([]*yamlfile.Node, bool) {
	if m.Parallel != nil && *m.Parallel < 1 {
		x.problems.Add(n.Get("parallel"), "parallel must be at least 1", "it says how many run at once")
		return nil, false
	}
	name := n.Get("as")
	if name == nil {
		name = n.Get("use").Plain(m.Use)
	}
	parallel := m.Parallel != nil && *m.Parallel > 1
	if !parallel && n.Get("as") == nil && n.Get("when") == nil && n.Get("next") == nil {
		var all []*yamlfile.Node
		for _, list := range lists {
			all = append(all, list.Items...)
		}
		return all, true
	}
	at := n.KeyOf("use")
	var entries []yamlfile.Entry
	if parallel {
		entries = []yamlfile.Entry{
			{Key: at.Plain(string(language.SplitKind)), Value: name},
			{Key: at.Plain("branches"), Value: n.Beside(yamlfile.List).WithItems(lists)},
			{Key: n.KeyOf("parallel"), Value: n.Get("parallel")},
		}
	} else {
		var all []*yamlfile.Node
		for _, list := range lists {
			all = append(all, list.Items...)
		}
		entries = []yamlfile.Entry{
			{Key: at.Plain(string(language.FlowKind)), Value: name},
			{Key: at.Plain("steps"), Value: n.Beside(yamlfile.List).WithItems(all)},
		}
	}
	for _, e := range n.Entries {
		if e.Key.Text == "when" || e.Key.Text == "next" {
			entries = append(entries, e)
		}
	}
	return []*yamlfile.Node{n.WithEntries(entries)}, true
}

// Emit writes an expanded document as a job file without include and templates.
func Emit(doc *yamlfile.Document) ([]byte, error) {
	root := emitted(doc.Root, doc, nil)
	for i := 0; i+1 < len(root.Content); i += 2 {
		if strings.HasPrefix(root.Content[i].Value, "x-") {
			root.Content = append(root.Content[:i], root.Content[i+2:]...)
			i -= 2
		}
	}
	return yamlfile.Encode(root)
}

func emitted(n *yamlfile.Node, doc *yamlfile.Document, through *yamlfile.Use) *yaml.Node {
	y := &yaml.Node{}
	if use := n.Use(); use != nil && use != through {
		if n.Kind == yamlfile.Map { // a list is a branch: a comment above its first element breaks the line
			y.HeadComment = comment(use, doc)
		}
		through = use
	}
	switch n.Kind {
	case yamlfile.List:
		y.Kind = yaml.SequenceNode
		for _, item := range n.Items {
			y.Content = append(y.Content, emitted(item, doc, through))
		}
	case yamlfile.Map:
		y.Kind = yaml.MappingNode
		for _, e := range n.Entries {
			y.Content = append(y.Content, emittedScalar(e.Key), emitted(e.Value, doc, through))
		}
	case yamlfile.Scalar:
		return emittedScalar(n)
	}
	if len(y.Content) == 0 {
		y.Style = yaml.FlowStyle
	}
	return y
}

func emittedScalar(n *yamlfile.Node) *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Value: n.Text}
	switch {
	case n.Empty:
		y.Tag = "!!null"
	case strings.Contains(n.Text, "\n"):
		y.Style = yaml.LiteralStyle
	case n.IsQuoted() && needsQuotes(n.Text):
		y.Style = yaml.DoubleQuotedStyle
	}
	return y
}

// needsQuotes reports whether a quoted text would have another meaning without its quotes: a number, a bool,
// null.
func needsQuotes(text string) bool {
	var plain yaml.Node
	if err := yaml.Unmarshal([]byte(text), &plain); err != nil || len(plain.Content) != 1 {
		return true
	}
	only := plain.Content[0]
	return only.Kind != yaml.ScalarNode || only.Tag != "!!str" || only.Value != text || only.Style != 0 || only.LineComment != ""
}

func comment(use *yamlfile.Use, doc *yamlfile.Document) string {
	at := fmt.Sprintf("line %d", use.At.Line)
	if other := use.At.Document(); other != nil && other != doc {
		at += " of " + other.Path
	}
	return use.What + ", " + at
}
