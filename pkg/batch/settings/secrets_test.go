package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/smallfile"
)

func TestNoMessageShowsASecretOfTheLineThatItQuotes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"databases:\n  default: postgres://me:hunter%2@h/x\n",
		"databases:\n  default: postgres://me:hunter%2\n",
		"databases:\n  default: \"postgres://me:a hunter2@h/x\n",
		"databases:\n  default: {url: 'postgres://me:hunter2@h/x', max_opn: 3}\n",
		"databases:\n  default: {url: sqlite:x, max_open: many, password: hunter2}\n",
		"databases:\n  default: postgres://me:hunter2@h/x: oops\n",
		"databases: [postgres://me:hunter2@h/x]\n",
		"databases:\n  d: postgresql+x://me:hunter2@h/x\n",
		"traces: {endpoint: 'ftp://me:hunter2@h/x'}\n",
		"postgres://me:hunter2@h/x\n",
		"api: {operator_tokens: {ci: !hunter2hunter2hu}}\n",
		"api:\n  operator_tokens:\n    ci: *hunter2hunter2hu\n",
	} {
		_, err := Load(Source{Dir: write(t, text)})
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "hunter", text)
	}
	for _, variable := range []string{"DATABASE_URL=postgres://me:hunter%2@h/x", "SURFIN_TRACES_ENDPOINT=ftp://me:hunter2@h/x"} {
		_, err := Load(Source{Dir: t.TempDir(), Environ: []string{variable}})
		require.Error(t, err, variable)
		require.NotContains(t, err.Error(), "hunter", variable)
	}
}

func TestTheCaretStaysBeforeWhatIsMasked(t *testing.T) {
	t.Parallel()
	_, err := Load(Source{Dir: write(t, "databases:\n  d: {url: 'postgres://me:hunter2@h/x', max_opn: 3}\n")})
	require.ErrorContains(t, err, "    2 |   d: {url: 'postgres://me:***@h/x', max_opn: 3}\n"+"      | "+strings.Repeat(" ", 26)+"^")
}

func TestSettingsHaveABoundOfSizeAndNesting(t *testing.T) {
	t.Parallel()
	_, err := Load(Source{Dir: write(t, "log: "+strings.Repeat("[", 50_000)+strings.Repeat("]", 50_000))})
	require.ErrorContains(t, err, FileName+":1:106: values are nested deeper than 100 levels")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, FileName), make([]byte, smallfile.MaxBytes+1), 0o600))
	_, err = Load(Source{Dir: dir})
	require.ErrorIs(t, err, smallfile.ErrTooLarge)
}

func TestTheModeOfFilesIsOctalAndTheOwnersAtLeast(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]os.FileMode{"0640": 0o640, "0o644": 0o644, "600": 0o600} {
		s, err := Load(Source{Dir: write(t, "files: {mode: "+text+"}\n")})
		require.NoError(t, err)
		require.Equal(t, want, s.Files.Mode)
	}
	for _, text := range []string{"0400", "0755", "rw-r--r--", "0888", "-1"} {
		_, err := Load(Source{Dir: write(t, "files: {mode: "+text+"}\n")})
		require.ErrorContains(t, err, "is not the mode of a file", text)
	}
}
