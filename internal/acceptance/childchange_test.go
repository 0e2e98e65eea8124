package acceptance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const callJob = `
job: outer
flow:
- job: call
  file: inner.yaml
`

const killedChild = `
job: inner
flow:
- step: done
  tasklet: {shell: {command: ["true"]}}
- step: killed
  tasklet:
    shell:
      script: |
        [ -e again ] && exit 0
        touch again
        kill -9 $PPID
`

func TestTheChangedFileOfAKilledChildIsRefusedWhereARestartIsExplained(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"outer.yaml": callJob, "inner.yaml": killedChild})
		code, out := s.run("run", "outer.yaml")
		require.Equal(t, -1, code, out)
		s.write("inner.yaml", strings.Replace(killedChild, "step: done", "step: renamed", 1))
		const said = "step call runs job inner, whose step done has completed, and is no longer in the file"
		for _, command := range []string{"run outer.yaml", "run outer.yaml --dry-run", "restart 1"} {
			code, out = s.run(strings.Fields(command)...)
			require.Equal(t, 2, code, "%s: %s", command, out)
			require.Contains(t, out, said, command)
			require.Contains(t, out, "-- step: done", command)
		}
		out = s.said("explain", "1")
		require.Contains(t, out, said)
		require.Contains(t, out, "--accept-changes")

		s.write("inner.yaml", killedChild)
		require.NotContains(t, s.said("explain", "1"), "has changed")
		code, out = s.run("run", "outer.yaml")
		require.Zero(t, code, out)
	})
}
