package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestTheParametersThatTellRowsApartComeFirst(t *testing.T) {
	t.Parallel()
	row := func(words ...string) core.Parameters {
		var list []core.Parameter
		for i := 0; i < len(words); i += 2 {
			list = append(list, core.Parameter{Name: words[i], Type: core.TypeString, Value: words[i+1], Identifying: true})
		}
		params, err := core.NewParameters(list...)
		require.NoError(t, err)
		return params
	}
	const folder = "/srv/landing/customers/of/a/very/long/path/that/is/the/same/"
	rows := []struct {
		job    string
		params core.Parameters
		want   string
	}{
		{"load", row("country", "ch", "input", folder+"a.csv"), "input=/srv/landing/…very/long/path/that/is/the/same/a.csv c…"},
		{"load", row("country", "ch", "input", folder+"b.csv"), "input=/srv/landing/…very/long/path/that/is/the/same/b.csv c…"},
		{"pay", row("bank", "x", "day", "2026-11-20"), "day=2026-11-20 bank=x"},
		{"pay", row("bank", "x", "day", "2026-11-21"), "day=2026-11-21 bank=x"},
		{"pay", row("bank", "x", "day", "2026-11-21", "run.again", "1"), "day=2026-11-21 run.again=1 bank=x"},
		{"load", row("country", "ch", "run.redrive", "7.load.2"), "country=ch redrive of step load of execution 7 (number 2)"},
		{"one", row("a", "1", "b", "2"), "a=1 b=2"},
	}
	c := newParameterColumn()
	for _, r := range rows {
		c.add(r.job, r.params)
	}
	for _, r := range rows {
		got := c.text(r.job, r.params)
		require.Equal(t, r.want, got)
		require.LessOrEqual(t, len([]rune(got)), maxParameters)
	}
}
