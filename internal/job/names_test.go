package job_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestNamesThatTheJournalCannotHoldAreRefusedBeforeTheLaunch(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	one := func(elements ...model.Element) model.Flow { return model.Flow{Elements: elements} }
	deep := one(&model.DecisionElement{Name: "d"})
	for i := range 20 {
		deep = one(&model.FlowElement{Name: strings.Repeat("f", 80+i), Flow: deep})
	}
	for want, flow := range map[string]model.Flow{
		"its name has 101 bytes, at most 100 are allowed": one(&model.DecisionElement{Name: strings.Repeat("s", 101)}),
		"the names of the elements around it have 2":      deep,
	} {
		_, err := e.Launcher.Run(t.Context(), &model.Job{Name: "x", Flow: flow}, core.Parameters{}, nil)
		require.ErrorContains(t, err, want)
	}
}
