package picture_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/picture"
)

var update = flag.Bool("update", false, "write testdata again")

// matches compares a picture with the one in testdata.
func matches(t *testing.T, name, svg string) {
	t.Helper()
	wellFormed(t, svg)
	path := filepath.Join("testdata", name+".svg")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(svg), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), svg)
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	require.NotContains(t, svg, "style=", "the policy of a page forbids it")
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func tour() []picture.Node {
	step := func(id, note, class string, edges ...picture.Edge) picture.Node {
		return picture.Node{ID: id, Title: id, Note: note, Class: "step " + class, Link: "#" + id, Edges: edges}
	}
	to := func(id, label string, taken bool) picture.Edge {
		return picture.Edge{To: id, Label: label, Taken: taken}
	}
	return []picture.Node{
		step("first", "COMPLETED 12ms", "completed", to("way", "", true)),
		{ID: "way", Title: "way", Note: "decision", Class: "decide completed", Edges: []picture.Edge{
			{End: "end", Label: "params.year > 3000"}, to("both", "", true), to("last", "holiday", false),
		}},
		{ID: "both", Title: "both", Note: "split, COMPLETED", Class: "split completed", Edges: []picture.Edge{to("copy", "", true)}, Flows: [][]picture.Node{
			{step("left", "COMPLETED 3.5s", "completed", to("middle", "", true)), step("middle", "COMPLETED", "completed", picture.Edge{End: "end"})},
			{step("right", "COMPLETED 1.2s", "completed", picture.Edge{End: "end"})},
		}},
		step("copy", "FAILED, 1,234,567 read", "failed", picture.Edge{End: "stop", Label: "FAILED", Taken: true}, to("first", "AGAIN", false), to("last", "", false)),
		step("last", "", "idle", to("both", "MORE", false), picture.Edge{End: "end"}),
	}
}

func TestAFlowIsDrawn(t *testing.T) {
	t.Parallel()
	matches(t, "flow", picture.Flow("flow of job tour", tour(), true))
	require.Equal(t, picture.Flow("x", tour(), false), picture.Flow("x", tour(), false))
	wellFormed(t, picture.Flow("nothing", nil, false))
}

func TestTextFromDataIsInert(t *testing.T) {
	t.Parallel()
	nasty := "</text><script>alert(1)</script>\"'&\x00\x1b[31m\u202egnp.exe\u2066" + string([]byte{0xff})
	svg := picture.Flow(nasty, []picture.Node{{ID: nasty, Title: nasty, Note: nasty, Class: nasty, Link: nasty, Edges: []picture.Edge{{End: nasty, Label: nasty}}}}, true)
	wellFormed(t, svg)
	require.NotContains(t, svg, "<script")
	require.NotContains(t, svg, "\u202e")
	require.Contains(t, svg, "␛[31m")
}
