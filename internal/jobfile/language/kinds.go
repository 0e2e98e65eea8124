package language

import (
	"database/sql"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Identifier is the form of names.
var Identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IdentifierHint describes an identifier.
const IdentifierHint = "letters, digits and _, not beginning with a digit"

// JobName is the form of a job's name.
var JobName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,99}$`)

// The texts of the key remote of a child job and of a split.
const (
	RemoteAuto = "auto"
	RemoteTrue = "true"
)

// The words of `exclusive`.
const (
	ExclusiveInstance = "instance"
	ExclusiveJob      = "job"
)

// OutcomeNames are the names of `job` that describe how the flow ended.
func OutcomeNames() []string { return []string{"status", "exit", "error", "failed_step"} }

// StepNumbers are the numbers of steps.NAME, named as everywhere.
func StepNumbers() []string {
	return []string{"read", "filtered", "written", "skipped", "read_skipped", "process_skipped", "write_skipped", "commits", "rollbacks"}
}

// BalancedName is true if a step's numbers account for every item (rule C11).
const BalancedName = "balanced"

// PartHole is a part's value in a placement.
var PartHole = regexp.MustCompile(`\$\{\s*part\.([A-Za-z_][A-Za-z0-9_]*)\s*\}`)

// OtherKinds are the names of field types in databases and languages.
func OtherKinds() map[string]string {
	return map[string]string{
		"integer": "int", "bigint": "int", "long": "int", "int64": "int", "smallint": "int",
		"text": "string", "varchar": "string", "char": "string", "str": "string",
		"double": "float", "number": "decimal", "numeric": "decimal", "money": "decimal", "dec": "decimal", "bigdecimal": "decimal", "real": "float", "float64": "float",
		"boolean": "bool", "datetime": "timestamp", "time": "timestamp", "timestamptz": "timestamp",
		"jsonb": "json", "object": "json", "map": "json", "struct": "json", "document": "json", "any": "json",
		"guid": "uuid", "uniqueidentifier": "uuid", "bytea": "bytes", "blob": "bytes", "binary": "bytes", "varbinary": "bytes", "base64": "bytes",
	}
}

// SecretParameterHint explains how to give a secret parameter.
func SecretParameterHint(name string) string {
	return fmt.Sprintf("give it after the job file, %s=@FILE, or as the secret %s: the variable %s, a file or a command", name, name, secret.Variable(name))
}

// Attr are the attributes of the transaction; a nil one has none.
func (t *Transaction) Attr() tx.Attr {
	if t == nil {
		return tx.Attr{}
	}
	return tx.Attr{
		Propagation: tx.Propagation(t.Propagation), Isolation: isolation(t.Isolation), ReadOnly: t.ReadOnly, Timeout: ValueOr0(t.Timeout),
	}
}

func isolation(name string) sql.IsolationLevel {
	return map[string]sql.IsolationLevel{
		"read_uncommitted": sql.LevelReadUncommitted,
		"read_committed":   sql.LevelReadCommitted,
		"repeatable_read":  sql.LevelRepeatableRead,
		"serializable":     sql.LevelSerializable,
	}[name]
}

// Limits are the limits that the file sets; a nil budget sets none.
func (m *Budget) Limits() task.Budget {
	if m == nil {
		return task.Budget{}
	}
	return task.Budget{
		MaxAttempts: ValueOr0(m.MaxAttempts), MaxTotalAttempts: ValueOr0(m.MaxTotalAttempts),
		Deadline: ValueOr0(m.Deadline), MaxNoProgress: ValueOr0(m.MaxNoProgress),
	}
}

// ValueOr0 is the value of an optional key.
func ValueOr0[T any](p *T) (x T) {
	if p != nil {
		x = *p
	}
	return x
}

// NamesOf returns the names of a list's members.
func NamesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, x := range list {
		names[i] = name(x)
	}
	return names
}

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
