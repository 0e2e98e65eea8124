package guide

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The indexes that the page creates before an upgrade are those of the migrations, which then find them.
func TestTheIndexesThatThePageCreatesBeforehandAreThoseOfTheMigrations(t *testing.T) {
	t.Parallel()
	_, text, found := strings.Cut(page(t, "docs/howto/database.md"), "\n<!-- beforehand -->")
	require.True(t, found)
	beforehand := strings.ReplaceAll(block(t, text, "sql"), " CONCURRENTLY", "")
	require.Equal(t, 7, strings.Count(beforehand, "CREATE INDEX IF NOT EXISTS surfin_"))
	const folder = "pkg/batch/repository/migrations/postgres/"
	migrations := strings.NewReplacer(`"{{prefix}}`, "surfin_", `"`, "").Replace(page(t, folder+"2015_find.up.sql") + page(t, folder+"2018_main.up.sql"))
	for _, statement := range strings.Split(strings.TrimSpace(beforehand), ";\n") {
		require.Contains(t, words(migrations), words(strings.TrimSuffix(statement, ";")))
	}
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }
