package cli

import (
	"strings"

	"github.com/surfin-batch/surfin/internal/operator"
)

// targetText returns "load: table strikes in sqlite /data/surfin.db", one per line.
func (env *environment) targetText(list []operator.Target) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(t.Step + ": " + t.Writer + " " + t.Target)
		if t.Database != "" {
			b.WriteString(" in " + env.databaseText(t.Database))
		}
		b.WriteString("\n")
	}
	return b.String()
}
