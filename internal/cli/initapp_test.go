package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
)

// The program is built once, without the race detector: it is the one that a
// newcomer has.
func TestTheProgramThatInitAppWritesRunsItsTest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds a program")
	}
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	s := newScene(t, testdb.SQLite(t), nil)
	dir := filepath.Join(s.dir, "meter")
	r := s.run("init", "app", "meter", "--dir", dir, "--replace", checkout)
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Contains(t, r.out, "cd DIR/meter && go test .")
	cmd := testtree.Command(t.Context(), "go", "test", "-vet=off", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "DATABASE_URL=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "ok  \tmeter")
}

func TestInitAppIsRefusedWhereItCannotBe(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"main.go": "package main\n", "go.mod": "module example.com/other\n\ngo 1.26\n", "surfin": "a program, not a checkout"})
	for want, args := range map[string][]string{
		`"Mine" cannot name an application`: {"Mine"},
		"it has no go.mod of github.com":    {"mine", "--replace", s.dir},
		"which name?":                       {},
		"no checkout contains":              {"fine", "--dir", s.dir},
	} {
		r := s.run(append([]string{"init", "app"}, args...)...)
		require.Equal(t, cli.ExitUsage, r.code, want)
		require.Contains(t, r.err, want)
	}
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	r := s.run("init", "app", "mine", "--dir", s.dir, "--replace", checkout)
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "is there already")
}
