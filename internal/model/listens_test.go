package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestEveryInterfaceOfAListenerIsKnown(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../pkg/batch/core/listener.go", nil, 0)
	require.NoError(t, err)
	var want, known []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if _, ok := spec.Type.(*ast.InterfaceType); ok {
				want = append(want, spec.Name.Name)
			}
		}
		return true
	})
	for _, callback := range listenerTypes() {
		require.True(t, Listens(callback))
		known = append(known, callback.Name())
	}
	slices.Sort(want)
	slices.Sort(known)
	require.Equal(t, want, known)
	require.False(t, Listens(reflect.TypeFor[*core.JobExecution]()))
}
