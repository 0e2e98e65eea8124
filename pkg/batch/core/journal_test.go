package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestEachFlowInsideOfAVisitHasALogOfItsOwn(t *testing.T) {
	t.Parallel()
	names := map[string]core.Visit{}
	for _, flow := range []string{"", "outer#1/0"} {
		for ordinal := range int64(3) {
			for branch := range 3 {
				v := core.Visit{Flow: flow, Ordinal: ordinal, Element: "load"}
				require.NotContains(t, names, v.Inner(branch))
				names[v.Inner(branch)] = v
			}
		}
	}
	require.Equal(t, "outer#1/0/load#3/1", core.Visit{Flow: "outer#1/0", Ordinal: 3, Element: "load"}.Inner(1))
}
