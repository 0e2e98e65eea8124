package repository_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
)

// Rule O1: a read that a port gets must get the patience of the others, too. Embedding would hide that it has none.
func TestEveryReadIsPatient(t *testing.T) {
	t.Parallel()
	impatient := []string{ // see Patient
		"Launches.Heartbeat", "Launches.WriterHeld", "CheckpointStore.Checkpoint", "CheckpointStore.Database",
		"Parks.Park", "Parks.Ready", "Parks.RecoverChildren", "Parks.RefuseResume", "Parks.Resumable", "Parks.Work",
		"Assignments.AssignPartition", "Assignments.HeartbeatStep", "Assignments.ReleasePartition",
		"Operations.Abandon", "Operations.Purge", "Skips.MarkRedriven", "Journal.RecordVisits", "Logs.AppendLog", "Series.StoreSeries",
		"PlacedWork.AssignPlaced", "PlacedWork.AssignedTo", "PlacedWork.Classes", "PlacedWork.EndPlaced", "PlacedWork.GiveBack", "PlacedWork.OrphanPlaced", "PlacedWork.Unassigned",
		"Requests.ClaimRequest", "Requests.AnswerRequest",
	}
	own, embedded := patientMethods(t)
	var without []string
	repository := reflect.TypeFor[ports.Repository]()
	for i := range repository.NumField() {
		port := repository.Field(i)
		for k := range port.Type.NumMethod() {
			if name := port.Type.Method(k).Name; !slices.Contains(own[embedded[port.Name]], name) {
				without = append(without, port.Name+"."+name)
			}
		}
	}
	require.ElementsMatch(t, impatient, without)
}

// patientMethods returns the methods that each patient type defines, and the type that embeds a port.
func patientMethods(t *testing.T) (own map[string][]string, embedded map[string]string) {
	t.Helper()
	own, embedded = map[string][]string{}, map[string]string{"PartitionPlans": "patientPlans"}
	inspect := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				if of, is := n.Recv.List[0].Type.(*ast.Ident); is {
					own[of.Name] = append(own[of.Name], n.Name.Name)
				}
			}
		case *ast.TypeSpec:
			of, is := n.Type.(*ast.StructType)
			if !is || !strings.HasPrefix(n.Name.Name, "patient") {
				break
			}
			for _, f := range of.Fields.List {
				if port, is := f.Type.(*ast.SelectorExpr); is && len(f.Names) == 0 {
					embedded[port.Sel.Name] = n.Name.Name
				}
			}
		}
		return true
	}
	for _, name := range []string{"patient.go", "patientreads.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, inspect)
	}
	return own, embedded
}
