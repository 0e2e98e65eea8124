package encode

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// A text consists of values: a string, a Literal, a Quoted, a List or an Object.
type (
	// Literal is written as it is, Quoted always in quotes.
	Literal string
	Quoted  string
	List    []any
	Object  []Pair
	Pair    struct {
		Key   string
		Value any
	}
)

// Map is an object of one pair.
func Map(key string, value any) Object { return Object{{key, value}} }

// Add adds a value, also an empty one.
func (o *Object) Add(key string, value any) { *o = append(*o, Pair{key, value}) }

// Put adds a value unless it is empty.
func (o *Object) Put(key string, value any) {
	switch v := value.(type) {
	case nil:
		return
	case string:
		if v == "" {
			return
		}
	case List:
		if len(v) == 0 {
			return
		}
	case Object:
		if len(v) == 0 {
			return
		}
	}
	o.Add(key, value)
}

// Flag adds key: true if on.
func (o *Object) Flag(key string, on bool) {
	if on {
		o.Put(key, "true")
	}
}

// Text writes a value as YAML.
func Text(value any) (string, error) {
	made, err := yamlfile.Encode(node(value))
	return string(made), err
}

func node(value any) *yaml.Node {
	n := &yaml.Node{}
	switch v := value.(type) {
	case Object:
		n.Kind = yaml.MappingNode
		for _, p := range v {
			n.Content = append(n.Content, scalar(p.Key), node(p.Value))
		}
	case List:
		n.Kind = yaml.SequenceNode
		for _, item := range v {
			n.Content = append(n.Content, node(item))
		}
	case Literal:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(v)}
	case Quoted:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(v), Style: yaml.DoubleQuotedStyle}
	case string:
		if n = scalar(v); block(v) {
			n.Style = yaml.LiteralStyle
		}
		return n
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./$][A-Za-z0-9_./$ -]*$`)

func scalar(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if !plain.MatchString(text) || strings.HasSuffix(text, " ") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

var blockLine = regexp.MustCompile(`^([ -~]*[!-~])?$`)

func block(text string) bool {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 2 || lines[0] == "" || lines[0][0] == ' ' || lines[len(lines)-1] == "" {
		return false
	}
	for _, line := range lines {
		if !blockLine.MatchString(line) {
			return false
		}
	}
	return true
}
