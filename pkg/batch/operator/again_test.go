package operator

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestTheNextInstanceFollowsTheNewestThatIsNoRepetition(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.write("day.yaml", `job: daily
parameters:
  day: {type: date}
incrementer: day
flow:
- step: check
  tasklet: {sql: select 1}
`)
		path := filepath.Join(s.dir, "day.yaml")
		day := map[string]string{"day": "2026-11-20"}
		for i, req := range []RunRequest{{Params: day}, {}, {Params: day, Again: true}, {}, {Next: true}} {
			req.File = path
			exec, err := s.s.Run(t.Context(), req)
			require.NoError(t, err)
			made, _ := exec.Params.Get("day")
			text, err := made.Canonical()
			require.NoError(t, err)
			require.Equal(t, []string{"2026-11-20", "2026-11-21", "2026-11-20", "2026-11-22", "2026-11-23"}[i], text)
		}
	})
}
