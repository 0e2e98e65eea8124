package guide

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCodeOfTheHowToIsTheExample(t *testing.T) {
	t.Parallel()
	text := page(t, "docs/howto/embed.md")
	code := page(t, "example/embed/main.go") + page(t, "example/embed/billing.go") + page(t, "pkg/batch/example_gorm_test.go")
	blocks := regexp.MustCompile("(?s)```(go|yaml)\n(.*?)```\n").FindAllStringSubmatch(text, -1)
	require.GreaterOrEqual(t, len(blocks), 6)
	for _, b := range blocks {
		if b[1] == "yaml" {
			require.Equal(t, page(t, "example/embed/jobs/report.yaml"), b[2])
			continue
		}
		for part := range strings.SplitSeq(b[2], "\n\n// ") {
			require.Contains(t, code, strings.TrimSuffix(part, "\n"))
		}
	}
}

func TestTheCodeOfAMountedConsoleIsTheExample(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(page(t, "docs/howto/mount.md"), -1)
	require.Len(t, blocks, 1)
	require.Contains(t, page(t, "pkg/batch/web/example_test.go"), blocks[0][1])
}

func TestTheCodeForThoseWhoComeFromSpringIsOfTheExamples(t *testing.T) {
	t.Parallel()
	code := page(t, "pkg/batch/example_test.go") + page(t, "pkg/batch/example_flow_test.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(page(t, "docs/coming-from-spring-batch.md"), -1)
	require.Greater(t, len(blocks), 3)
	for _, b := range blocks {
		require.Contains(t, code, b[1])
	}
}

func TestTheCodeForStateMachinesIsTheExample(t *testing.T) {
	t.Parallel()
	code := page(t, "pkg/batch/guard/example_entity_test.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(page(t, "docs/howto/state-machines.md"), -1)
	require.Len(t, blocks, 2)
	for _, b := range blocks {
		require.Contains(t, code, b[1])
	}
}
