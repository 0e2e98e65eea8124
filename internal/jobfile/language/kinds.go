package language

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// Kind is the key that determines the kind of an element.
type Kind string

// The kinds of elements.
const (
	StepKind   Kind = "step"
	DecideKind Kind = "decide"
	SplitKind  Kind = "split"
	FlowKind   Kind = "flow"
	AtomicKind Kind = "atomic"
	JobKind    Kind = "job"
)

// KindNames are the keys of the kinds.
func KindNames() []string { return []string{"step", "decide", "split", "flow", "atomic", "job"} }

// KindList lists the names of the kinds and the use of a template, for messages.
func KindList() string { return strings.Join(append(KindNames(), "use"), ", ") }

// Article is the name of an element of the kind in messages.
func (k Kind) Article() string {
	switch k {
	case DecideKind:
		return "a decision"
	case AtomicKind:
		return "an atomic group"
	case JobKind:
		return "a child job"
	case StepKind, SplitKind, FlowKind:
	}
	return "a " + string(k)
}

// Word is Article without the article.
func (k Kind) Word() string {
	_, word, _ := strings.Cut(k.Article(), " ")
	return word
}

// Keys makes the model of the element's kind, to be decoded into.
func (m *Element) Keys() reflect.Value {
	switch m.Kind {
	case DecideKind:
		m.Decide = &Decide{}
		return reflect.ValueOf(m.Decide).Elem()
	case SplitKind:
		m.Split = &Split{}
		return reflect.ValueOf(m.Split).Elem()
	case FlowKind:
		m.Flow = &Flow{}
		return reflect.ValueOf(m.Flow).Elem()
	case AtomicKind:
		m.Atomic = &Atomic{}
		return reflect.ValueOf(m.Atomic).Elem()
	case JobKind:
		m.Job = &Child{}
		return reflect.ValueOf(m.Job).Elem()
	case StepKind:
	}
	m.Step = &Step{}
	return reflect.ValueOf(m.Step).Elem()
}

// Common returns the decoded name and the keys that all elements have.
func (m *Element) Common() (name string, keys *ElementKeys) {
	switch m.Kind {
	case DecideKind:
		return m.Decide.Decide, &m.Decide.ElementKeys
	case SplitKind:
		return m.Split.Split, &m.Split.ElementKeys
	case FlowKind:
		return m.Flow.Flow, &m.Flow.ElementKeys
	case AtomicKind:
		return m.Atomic.Atomic, &m.Atomic.ElementKeys
	case JobKind:
		return m.Job.Job, &m.Job.ElementKeys
	case StepKind:
	}
	return m.Step.Step, &m.Step.ElementKeys
}

// Describe returns the yamlfile.Document.Describe for the job of that name.
func Describe(name string) func(way []yamlfile.Step) string {
	return func(way []yamlfile.Step) string {
		place, option := "job "+name, ""
		for _, s := range way {
			switch {
			case s.Key != "":
				option = below(option, s.Key, name)
			case elementAt(s.In.Items[s.Index]) != "":
				place, option = "job "+name+": "+elementAt(s.In.Items[s.Index]), ""
			default:
				option += fmt.Sprintf("[%d]", s.Index+1)
			}
		}
		if option == "" {
			return place
		}
		return place + ": " + option
	}
}

// below adds a key to a dotted path, without keys that only lead to elements and without the names of
// components that are Go code of the job.
func below(option, key, job string) string {
	switch {
	case option == "" && (key == "flow" || key == "finally" || IsElementKind(key)), strings.HasPrefix(key, job+"."):
		return option
	case option == "":
		return key
	}
	return option + "." + key
}

// IsElementKind reports whether the key names a kind.
func IsElementKind(key string) bool { return slices.Contains(KindNames(), key) }

func elementAt(n *yamlfile.Node) string {
	for _, e := range n.Entries {
		if IsElementKind(e.Key.Text) && e.Value.Kind == yamlfile.Scalar {
			return e.Key.Text + " " + e.Value.Text
		}
	}
	return ""
}
