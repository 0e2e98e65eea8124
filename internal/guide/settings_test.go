package guide

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func TestEverySettingHasAUnitADefaultAndAnEffectInTheReference(t *testing.T) {
	t.Parallel()
	reference := page(t, "docs/reference/settings.md")
	cells := func(key string, n int) []string {
		t.Helper()
		for line := range strings.Lines(reference) {
			if strings.HasPrefix(line, "| `"+key+"` |") {
				fields := strings.Split(strings.ReplaceAll(strings.Trim(strings.TrimSpace(line), "|"), `\|`, "/"), "|")
				require.Len(t, fields, n, line)
				for i := range fields {
					fields[i] = strings.TrimSpace(fields[i])
					require.NotEmpty(t, fields[i], "%s: column %d: a number has no unit by itself: say it in settings.Unit", key, i+1)
				}
				return fields
			}
		}
		t.Fatalf("docs/reference/settings.md has no setting %s: run make generate", key)
		return nil
	}
	for _, row := range settings.Reference() {
		cells(row[0], 5)
	}
	howto := section(t, page(t, "docs/howto/tasks.md"), "## Settings that processes share")
	for _, s := range taskports.DefaultSettings() {
		fields := cells(s.Name, 4)
		require.Equal(t, []string{s.Unit, "`" + s.Value + "`"}, fields[1:3])
		require.Contains(t, howto, "| `"+s.Name+"` | "+s.Unit+" | "+s.Value, "the table of the how-to")
	}
}
