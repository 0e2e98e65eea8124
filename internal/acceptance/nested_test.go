package acceptance

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func shippedJob(t *testing.T, names ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("..", "..", "jobs", filepath.FromSlash(name)))
		require.NoError(t, err)
		files[name] = string(text)
	}
	return files
}

// Rules D9b, D9c.
func TestBadElementsOfNestedFilesAreFoundByTheirIndexCorrectedAndRedriven(t *testing.T) {
	t.Parallel()
	inTurn(t, 1, func(t *testing.T, url string) {
		s := newScene(t, url, shippedJob(t, "nested.yaml", "data/stations.geojson", "data/orders.json"))
		object := "text"
		if strings.HasPrefix(url, "postgres") {
			object = "jsonb"
		}
		s.said("sql", "--write", "create table station (id varchar(9) primary key, name text, opened date, lon float, lat float, geometry "+object+")")
		s.said("run", "nested.yaml")
		list := strings.Join(strings.Fields(s.said("skips", "list", "1")), " ")
		for _, want := range []string{
			" stations read data/stations.geojson:3, element 2 parse ", " stations read data/stations.geojson:5, element 4 parse ",
			" lines read data/orders.json:1, element 1, row 2 parse ", " lines read data/orders.json:1, element 3, row 1 parse ",
			" lines read data/orders.json:1, element 4, row 2 parse ",
		} {
			require.Contains(t, list, want)
		}
		fixes := map[string]string{"Jan 1946": "1946-01-01", `"geometry":null`: `"geometry":{"type":"Point","coordinates":[-124.56,47.94]}`}
		s.redriveCorrected("stations", fixes, 2)
		one := s.said("skips", "list", "1", "--index", "3", "--step", "lines")
		require.Equal(t, 1, strings.Count(one, " lines "), one)
		fixes = map[string]string{`"two"`: "2", "Nov 31, 2026": "Nov 30, 2026", `"19.90"`: "19.9", `"price":12,`: ""}
		s.redriveCorrected("lines", fixes, 3)
		require.Contains(t, s.said("sql", "select count(*) as n, sum(count) as pieces from order_line", "--format", "json"), `"pieces": 9`)
		require.Contains(t, s.said("sql", "select sum(order_no * 100 + line_no) as numbers from order_line", "--format", "json"), `"numbers": 1307`)
		if object == "jsonb" {
			require.Contains(t, s.said("sql", "select geometry->'coordinates'->>0 as lon from station where id = 'UIL'"), "-124.56")
		}
		require.NotContains(t, s.said("skips", "list", "1", "--left"), "read")
		text, err := os.ReadFile(filepath.Join(s.dir, "out", "stations.json"))
		require.NoError(t, err)
		var features []struct {
			ID         string
			Properties struct{ At struct{ Lon float64 } }
			Geometry   struct{ Coordinates []float64 }
		}
		require.NoError(t, json.Unmarshal(text, &features))
		require.Len(t, features, 2)
		require.InEpsilon(t, features[1].Properties.At.Lon, features[1].Geometry.Coordinates[0], 0)
	})
}

func (s *scene) redriveCorrected(step string, fixes map[string]string, items int) {
	s.t.Helper()
	export := s.said("skips", "export", "1", "--step", step)
	var edited bytes.Buffer
	for line := range strings.Lines(export) {
		if !strings.HasPrefix(line, "{") {
			continue // of the log
		}
		var skip map[string]any
		require.NoError(s.t, json.Unmarshal([]byte(line), &skip))
		text := skip["raw"].(string)
		for from, to := range fixes {
			text = strings.ReplaceAll(text, from, to)
		}
		require.NotEqual(s.t, skip["raw"], text)
		require.NotZero(s.t, skip["line"])
		skip["raw"] = text
		require.NoError(s.t, json.NewEncoder(&edited).Encode(skip))
		items--
	}
	require.Zero(s.t, items)
	file := filepath.Join(s.dir, step+".jsonl")
	require.NoError(s.t, os.WriteFile(file, edited.Bytes(), 0o600))
	s.said("skips", "redrive", "1", "--step", step, "--from", file)
}
