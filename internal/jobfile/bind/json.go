package bind

import (
	"encoding/json"

	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// JsonTree makes a value for encoding/json of a tree; scalar returns the values of its scalars.
func JsonTree(n *yamlfile.Node, scalar func(n *yamlfile.Node) (any, error)) (any, error) {
	switch n.Kind {
	case yamlfile.List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			value, err := JsonTree(item, scalar)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	case yamlfile.Map:
		object := make(map[string]any, len(n.Entries))
		for _, e := range n.Entries {
			value, err := JsonTree(e.Value, scalar)
			if err != nil {
				return nil, err
			}
			object[e.Key.Text] = value
		}
		return object, nil
	case yamlfile.Scalar:
	}
	return scalar(n)
}

// PayloadScalar is a number, a bool or null if the text is written like one of JSON, without quotes; a text
// that is one ${...} keeps its type.
func PayloadScalar(v *Values, n *yamlfile.Node, late *template.LateValue) (any, error) {
	switch {
	case late == nil: // reported
		return n.Text, nil
	case n.Empty:
		return nil, nil
	case len(late.Holes) == 0 && !n.IsQuoted() && json.Valid([]byte(n.Text)):
		return json.RawMessage(n.Text), nil
	case len(late.Holes) == 0:
		return late.Literal(), nil
	case !late.Whole():
		value, _, err := v.render(late, false)
		return value.Text, err
	}
	x, err := v.Eval(late.Holes[0])
	switch x.(type) {
	case nil, bool, int64, float64, string:
		return x, err
	}
	return template.Text(x), err
}
