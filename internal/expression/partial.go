package expression

import (
	"errors"

	"github.com/expr-lang/expr/ast"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Try computes the expression if some names, for which unknown returns true, have no value yet.
// known is false if the result depends on one. Logic is three-valued: `false && x` and `x && false`
// are false. A part on which Eval may fail is unknown.
func (p *Program) Try(vars map[string]any, unknown func(path string) bool) (result any, known bool, err error) {
	if p.opaque != nil {
		for _, path := range p.uses {
			if unknown(path) {
				return nil, false, nil
			}
		}
		result, err = p.Eval(vars)
		return result, err == nil, err
	}
	v, err := p.root.eval(&Frame{vars: vars, unknown: unknown, unset: map[int]bool{}})
	switch {
	case isUnknown(err):
		return nil, false, nil
	case err != nil:
		return nil, false, inText(p.text, err)
	}
	return toGo(v, p.root.kind), true, nil
}

var errUnknown = errors.New("the value is not known yet")

func isUnknown(err error) bool { return errors.Is(err, errUnknown) }

// onlyIf is unknown if eval fails, since the part may not be computed in the end.
func onlyIf(eval evalFn, f *Frame, want row.Value) (row.Value, error) {
	if v, err := eval(f); err == nil && v.Equal(want) {
		return want, nil
	}
	return row.Value{}, errUnknown
}

func mayFail(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode,
		*ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode:
		return false
	case *ast.UnaryNode:
		return n.Operator == "-" || mayFail(n.Node)
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&", "or", "||", "??", "==", "!=", "<", "<=", ">", ">=", "in", "..", "contains", "startsWith", "endsWith":
			return mayFail(n.Left) || mayFail(n.Right)
		}
	case *ast.ConditionalNode:
		return mayFail(n.Cond) || mayFail(n.Exp1) || mayFail(n.Exp2)
	case *ast.VariableDeclaratorNode:
		return mayFail(n.Value) || mayFail(n.Expr)
	case *ast.ArrayNode:
		for _, element := range n.Nodes {
			if mayFail(element) {
				return true
			}
		}
		return false
	}
	return true
}
