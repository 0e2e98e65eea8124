package expand

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

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

// emitted is a node for the encoder. through is the use of the outer node.
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
