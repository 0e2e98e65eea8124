package expand

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/source"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

const (
	includeKey   = "include"
	typesKey     = "types"
	templatesKey = "templates"
	calendarsKey = "calendars"
	defaultsKey  = "defaults"
)

type includer struct {
	problems                    *yamlfile.Collector
	included                    []source.Included
	known                       map[string]bool // by identity
	types, templates, calendars []yamlfile.Entry
	defaults                    *yamlfile.Node
	unread                      bool
}

// Include adds the types, templates, calendars and defaults of the included files. ok is false if a
// file could not be read.
func Include(doc *yamlfile.Document, from source.Source, problems *yamlfile.Collector) (files []source.Included, ok bool) {
	root := doc.Root
	if root.Kind != yamlfile.Map || root.Get(includeKey) == nil {
		return nil, true
	}
	i := &includer{problems: problems, known: map[string]bool{}}
	i.read(root.Get(includeKey), from, "", []string{from.Identity()})
	entries := slices.DeleteFunc(slices.Clone(root.Entries), func(e yamlfile.Entry) bool { return e.Key.Text == includeKey })
	at := root.KeyOf(includeKey)
	entries = completed(entries, typesKey, at, i.union(i.types, root.Get(typesKey), "type"))
	entries = completed(entries, templatesKey, at, i.union(i.templates, root.Get(templatesKey), "template"))
	entries = completed(entries, calendarsKey, at, i.union(i.calendars, root.Get(calendarsKey), "calendar"))
	own := root.Get(defaultsKey)
	switch {
	case i.defaults == nil:
	case own == nil:
		entries = completed(entries, defaultsKey, at, i.defaults)
	default:
		entries = completed(entries, defaultsKey, at, i.mergeDefaults(i.defaults, own, "", true))
	}
	doc.Root = root.WithEntries(entries)
	return i.included, !i.unread
}

func completed(entries []yamlfile.Entry, key string, at *yamlfile.Node, value *yamlfile.Node) []yamlfile.Entry {
	if value == nil {
		return entries
	}
	for i, e := range entries {
		if e.Key.Text == key {
			entries[i].Value = value
			return entries
		}
	}
	return append(entries, yamlfile.Entry{Key: at.Plain(key), Value: value})
}

func (i *includer) read(list *yamlfile.Node, from source.Source, name string, chain []string) {
	items := []*yamlfile.Node{list}
	if list.Kind == yamlfile.List {
		items = list.Items
	}
	named := map[string]*yamlfile.Node{}
	for _, n := range items {
		const form = "write the path of a file, relative to this one, or a list of them"
		switch {
		case n.Bad:
			continue
		case n.Kind != yamlfile.Scalar:
			i.problems.Add(n, "include takes a path, not "+n.Kind.String(), form)
			continue
		case strings.TrimSpace(n.Text) == "":
			i.problems.Add(n, "include names no file", form)
			continue
		case strings.Contains(n.Text, "${"):
			i.problems.Add(n, "include takes no ${...}", "the list of files is fixed when the file is loaded")
			continue
		}
		file, err := from.Child(n.Text)
		if err != nil {
			i.problems.Add(n, "include: "+err.Error(), "it is relative to this file")
			continue
		}
		if first := named[file.Identity()]; first != nil {
			i.problems.Add(n, fmt.Sprintf("include: %s appears twice", n.Text), "the other one is "+first.In(n)+": leave one of them out")
			continue
		}
		named[file.Identity()] = n
		i.readFile(n, file, source.NameFrom(name, n.Text), chain)
	}
}

func (i *includer) readFile(at *yamlfile.Node, file source.Source, name string, chain []string) {
	id := file.Identity()
	if circle := source.Circle(chain, id); circle != "" {
		i.problems.Add(at, "include: this file would include itself: "+circle, "leave one of them out")
		return
	}
	if i.known[id] {
		return
	}
	i.known[id] = true
	text, err := file.Read()
	if err != nil {
		i.problems.Add(at, fmt.Sprintf("include: %s cannot be read: %v", file, source.Reason(err)), "it is relative to this file")
		i.unread = true
		return
	}
	doc, problems := yamlfile.Parse(file.String(), text)
	i.problems.Merge(problems)
	i.included = append(i.included, source.Included{Name: name, From: file, Doc: doc})
	switch {
	case doc.Root == nil:
		i.unread = true // reported
		return
	case doc.Root.Kind != yamlfile.Map:
		i.problems.Add(doc.Root, "an included file takes "+yamlfile.Map.String()+", not "+doc.Root.Kind.String(), includeKeys)
		return
	}
	i.take(doc.Root)
	if more := doc.Root.Get(includeKey); more != nil {
		i.read(more, file, name, append(slices.Clone(chain), id))
	}
}

const includeKeys = "an included file gives types, templates, calendars and defaults, and may include others"

func (i *includer) take(root *yamlfile.Node) {
	for _, e := range root.Entries {
		switch {
		case e.Key.Bad || e.Value.Bad, e.Key.Text == includeKey, strings.HasPrefix(e.Key.Text, "x-"):
		case e.Key.Text == typesKey || e.Key.Text == templatesKey || e.Key.Text == calendarsKey || e.Key.Text == defaultsKey:
			if e.Value.Kind != yamlfile.Map {
				i.problems.Add(e.Value, fmt.Sprintf("%s takes %s, not %s", e.Key.Text, yamlfile.Map, e.Value.Kind), "")
				continue
			}
			i.takeKey(e)
		case language.HasKey(reflect.TypeFor[language.Job](), e.Key.Text):
			i.problems.Add(e.Key, e.Key.Text+" is a key of the job file", includeKeys)
		default:
			i.problems.Add(e.Key, fmt.Sprintf("unknown key %q in an included file", e.Key.Text), yamlfile.Suggest(e.Key.Text, []string{typesKey, templatesKey, calendarsKey, defaultsKey, includeKey}))
		}
	}
}

func (i *includer) takeKey(e yamlfile.Entry) {
	switch e.Key.Text {
	case typesKey:
		i.types = append(i.types, e.Value.Entries...)
	case templatesKey:
		i.templates = append(i.templates, e.Value.Entries...)
	case calendarsKey:
		i.calendars = append(i.calendars, e.Value.Entries...)
	case defaultsKey:
		if i.defaults == nil {
			i.defaults = e.Value
			return
		}
		i.defaults = i.mergeDefaults(i.defaults, e.Value, "", false)
	}
}

func (i *includer) union(of []yamlfile.Entry, own *yamlfile.Node, what string) *yamlfile.Node {
	if len(of) == 0 || own != nil && own.Kind != yamlfile.Map {
		return nil
	}
	at := of[0].Value.Beside(yamlfile.Map)
	if own != nil {
		at, of = own, append(of, own.Entries...)
	}
	seen := map[string]*yamlfile.Node{}
	var entries []yamlfile.Entry
	for _, e := range of {
		if first := seen[e.Key.Text]; first != nil {
			i.problems.Add(e.Key, fmt.Sprintf("the %s %s appears twice", what, e.Key.Text), "the other one is "+first.In(e.Key)+": leave one of them out, or rename it")
			continue
		}
		seen[e.Key.Text] = e.Key
		entries = append(entries, e)
	}
	return at.WithEntries(entries)
}

// mergeDefaults: the job file's defaults replace those of its includes; two includes must not set
// the same key.
func (i *includer) mergeDefaults(base, over *yamlfile.Node, path string, replace bool) *yamlfile.Node {
	entries := slices.Clone(base.Entries)
	for _, e := range over.Entries {
		at := slices.IndexFunc(entries, func(b yamlfile.Entry) bool { return b.Key.Text == e.Key.Text })
		if at < 0 {
			entries = append(entries, e)
			continue
		}
		below := strings.TrimPrefix(path+"."+e.Key.Text, ".")
		was, is := limitOf(below, entries[at].Value), limitOf(below, e.Value)
		switch {
		case was.Kind == yamlfile.Map && is.Kind == yamlfile.Map:
			entries[at] = yamlfile.Entry{Key: e.Key, Value: i.mergeDefaults(was, is, below, replace)}
		case replace:
			entries[at] = e
		default:
			i.problems.Add(e.Key, fmt.Sprintf("the default %s appears twice", below), "the other one is "+entries[at].Key.In(e.Key)+": leave one of them out; the job file may set its own")
		}
	}
	return over.WithEntries(entries)
}

func limitOf(path string, n *yamlfile.Node) *yamlfile.Node {
	if n.Kind != yamlfile.Scalar || n.Bad || n.Empty || path != "retry" && path != "skip" {
		return n
	}
	return n.Beside(yamlfile.Map).WithEntries([]yamlfile.Entry{{Key: n.Plain("limit"), Value: n}})
}
