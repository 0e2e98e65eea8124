package guide

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The indexes that the page creates before an upgrade are the migration's, which then finds them.
func TestTheIndexesThatThePageCreatesBeforehandAreThoseOfTheMigration(t *testing.T) {
	t.Parallel()
	_, text, found := strings.Cut(page(t, "docs/howto/database.md"), "\n<!-- beforehand -->")
	require.True(t, found)
	beforehand := strings.ReplaceAll(block(t, text, "sql"), " CONCURRENTLY", "")
	require.Equal(t, 6, strings.Count(beforehand, "CREATE INDEX IF NOT EXISTS surfin_"))
	migration := strings.NewReplacer(`"{{prefix}}`, "surfin_", `"`, "").Replace(page(t, "pkg/batch/repository/migrations/postgres/2015_find.up.sql"))
	for _, statement := range strings.Split(strings.TrimSpace(beforehand), ";\n") {
		require.Contains(t, words(migration), words(strings.TrimSuffix(statement, ";")))
	}
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }
