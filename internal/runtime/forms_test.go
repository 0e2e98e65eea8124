package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASubmissionWithTwoMeaningsIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"tasks": [{"type": "a", "type": "b"}]}`:      `the key "type" is there twice (byte 26)`,
		`[{"type": "a", "payload": {"x": 1, "x": 2}}]`: `the key "x" is there twice`,
		`[{"type": "a", "title": "\udc00"}]`:           `the lone surrogate \udc00 is no character`,
		"[{\"type\": \"a\", \"title\": \"\xff\"}]":     "UTF-8",
		`[{"type": "a", "tittle": "b"}]`:               `tasks[0]: unknown key "tittle" (did you mean title?)`,
		`{"tasks": [{"type": "a"}], "budgt": {}}`:      `unknown key "budgt" (did you mean budget?)`,
	} {
		_, err := ReadSubmission([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	sub, err := ReadSubmission([]byte(`[{"type": "a", "payload": {"x": 1}}]`))
	require.NoError(t, err)
	require.Len(t, sub.Tasks, 1)
}
