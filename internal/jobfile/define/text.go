package define

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

type (
	literal string
	quoted  string
	list    []any
	object  []pair
	pair    struct {
		key   string
		value any
	}
)

func (o *object) put(key string, value any) {
	switch v := value.(type) {
	case nil:
		return
	case string:
		if v == "" {
			return
		}
	case list:
		if len(v) == 0 {
			return
		}
	case object:
		if len(v) == 0 {
			return
		}
	}
	*o = append(*o, pair{key, value})
}

func (o *object) flag(key string, on bool) {
	if on {
		o.put(key, "true")
	}
}

func text(value any) (string, error) {
	made, err := yamlfile.Encode(node(value))
	return string(made), err
}

func node(value any) *yaml.Node {
	n := &yaml.Node{}
	switch v := value.(type) {
	case object:
		n.Kind = yaml.MappingNode
		for _, p := range v {
			n.Content = append(n.Content, scalar(p.key), node(p.value))
		}
	case list:
		n.Kind = yaml.SequenceNode
		for _, item := range v {
			n.Content = append(n.Content, node(item))
		}
	case literal:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(v)}
	case quoted:
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
