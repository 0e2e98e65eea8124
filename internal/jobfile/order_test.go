package jobfile_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
)

// plot draws a flow as YAML: steps in order, nested flows and splits, and further transitions to elements of
// the same list.
type plot struct {
	t     *rapid.T
	names []string // of the steps, in the order of the file
	count int
	loops bool
}

func (p *plot) name(kind string) string {
	p.count++
	return fmt.Sprintf("%s%d", kind, p.count)
}

func (p *plot) list(depth int) string {
	n := rapid.IntRange(1, 4).Draw(p.t, "elements")
	var elements, names []string
	for range n {
		kind := "step"
		if depth > 0 {
			kind = rapid.SampledFrom([]string{"step", "step", "flow", "split"}).Draw(p.t, "kind")
		}
		name := p.name(kind)
		names = append(names, name)
		switch kind {
		case "step":
			p.names = append(p.names, name)
			elements = append(elements, "{step: "+name+", tasklet: idle")
		case "flow":
			elements = append(elements, "{flow: "+name+", steps: "+p.list(depth-1))
		default:
			elements = append(elements, "{split: "+name+", branches: ["+p.list(depth-1)+", "+p.list(depth-1)+"]")
		}
	}
	for i := range elements {
		if rapid.Bool().Draw(p.t, "next") {
			to := rapid.IntRange(i+1, n).Draw(p.t, "to")
			if p.loops {
				to = rapid.IntRange(0, n).Draw(p.t, "to")
			}
			target := "end"
			if to < n {
				target = names[to]
			}
			elements[i] += ", next: {OTHER: " + target + "}"
		}
		elements[i] += "}"
	}
	return "[" + strings.Join(elements, ", ") + "]"
}

// wander walks a compiled flow at random and reports the elements that ran before each element.
func wander(t *rapid.T, flow model.Flow, before map[string]bool, left *int, visit func(name string, before map[string]bool)) {
	at := flow.Elements[0]
	for at != nil && *left > 0 {
		*left--
		name := at.ElementName()
		visit(name, before)
		switch e := at.(type) {
		case *model.StepElement:
			before[name] = true
		case *model.FlowElement:
			wander(t, e.Flow, before, left, visit)
		case *model.SplitElement:
			after := maps.Clone(before)
			for _, branch := range e.Branches {
				mine := maps.Clone(before)
				wander(t, branch, mine, left, visit)
				maps.Copy(after, mine)
			}
			maps.Copy(before, after)
		}
		edge := rapid.SampledFrom(at.Edges()).Draw(t, "edge")
		at, _ = flow.Find(edge.Target.Name)
	}
}

func TestAStepMayBeNamedWhereItCanHaveRun(t *testing.T) {
	t.Parallel()
	engine := testengine.New(t, testdb.SQLite(t))
	reg := (&bench{}).registry(t)
	rapid.Check(t, func(t *rapid.T) {
		p := &plot{t: t, loops: rapid.Bool().Draw(t, "loops")}
		text := "job: x\nflow: " + p.list(2) + "\n"
		file, err := jobfile.Parse("job.yaml", []byte(text), reg)
		if err != nil {
			require.Contains(t, err.Error(), "leads to itself", text)
			t.Skip("not a flow")
		}
		compiled, err := file.Compile(jobfile.Deps{Provider: engine.Provider, Registry: reg})
		require.NoError(t, err, text)
		left := 60
		wander(t, compiled.Flow, map[string]bool{}, &left, func(name string, before map[string]bool) {
			for earlier := range before {
				if earlier != name {
					require.True(t, jobfile.MayPrecede(file, earlier, name), "%s before %s in %s", earlier, name, text)
				}
			}
		})
		if p.loops {
			return
		}
		for i, later := range p.names {
			for _, earlier := range p.names[i:] {
				require.False(t, jobfile.MayPrecede(file, earlier, later), "%s before %s in %s", earlier, later, text)
			}
		}
	})
}
