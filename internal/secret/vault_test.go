package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/secret"
)

func TestASecretIsFoundInTheEnvironmentTheFolderAndTheSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("mounted", "from the folder\n")
	write("both", "from the folder")
	v := secret.NewVault([]string{"SURFIN_SECRET_HOOK=from the environment", "SURFIN_SECRET_BOTH=first", "HOOK=x"}, dir, map[string]secret.Origin{
		"file":  {File: write("elsewhere", "from a file\r\n")},
		"asked": {Command: []string{"sh", "-c", "echo from a command"}},
		"fails": {Command: []string{"sh", "-c", "echo hunter2 >&2; exit 3"}},
		"gone":  {File: filepath.Join(dir, "none")},
		"short": {Command: []string{"echo", "abc"}},
	})
	for name, want := range map[string]string{"hook": "from the environment", "both": "first", "mounted": "from the folder", "file": "from a file", "asked": "from a command"} {
		value, err := v.Lookup(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, want, value)
	}
	for name, want := range map[string]string{
		"none": "there is no secret none", "fails": "the command for the secret fails, sh: exit status 3",
		"gone": "the secret gone: open", "short": "the secret short has 3 bytes",
	} {
		_, err := v.Lookup(t.Context(), name)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter")
	}
	var none *secret.Vault
	_, err := none.Lookup(t.Context(), "x")
	require.ErrorAs(t, err, new(*secret.MissingError))
}

func TestASecretThatWasFoundIsMaskedInEveryForm(t *testing.T) {
	t.Parallel()
	const value = `a/b c"<d>`
	v := secret.NewVault([]string{"SURFIN_SECRET_A=" + value, "SURFIN_SECRET_B=first line of it\nsecond line"}, t.TempDir(), nil)
	require.Equal(t, "say ***", v.Mask("say "+value), "it is known from the start (rule SE4)")
	for _, name := range []string{"a", "b"} {
		_, err := v.Lookup(t.Context(), name)
		require.NoError(t, err)
	}
	for text, want := range map[string]string{
		"say " + value + "!":                        "say ***!",
		"http://h/?k=a%2Fb+c%22%3Cd%3E&x=1":         "http://h/?k=***&x=1",
		`{"k":"a/b c\"<d>"}`:                        `{"k":"***"}`,
		`{"k":"a/b c\"\u003cd\u003e"}`:              `{"k":"***"}`,
		"Basic YS9iIGMiPGQ+":                        "Basic ***",
		"log: first line of it":                     "log: ***",
		"k=a%2fb+c%22%3cd%3e":                       "k=***",
		"k=a%2Fb%20c%22%3Cd%3E":                     "k=***",
		"6d653a612f6220632022 612f622063223c643e22": "6d653a612f6220632022 ***22",
		"postgres://me:pw@h/x":                      "postgres://me:***@h/x",
		strings.Repeat("nothing ", 3):               strings.Repeat("nothing ", 3),
	} {
		require.Equal(t, want, v.Mask(text))
	}
	require.Equal(t, "postgres://me:pw@h/x", v.Values("postgres://me:pw@h/x"))
}

// Basic authentication encodes user and password together: the value begins at
// any of three places among the digits.
func TestASecretInBase64IsMaskedWhateverIsAroundIt(t *testing.T) {
	t.Parallel()
	const value = "s3cret?>~value"
	v := secret.NewVault([]string{"SURFIN_SECRET_A=" + value}, t.TempDir(), nil)
	for _, around := range []string{"", "x", "xy", "xyz", "a long user:"} {
		for _, after := range []string{"", "!", "!!", " and more"} {
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				encoded := encoding.EncodeToString([]byte(around + value + after))
				masked := v.Mask("Basic " + encoded + ".")
				require.Contains(t, masked, "***", encoded)
				inner := encoding.EncodeToString([]byte(value))
				require.NotContains(t, masked, inner[4:len(inner)-4])
				begin, end, _ := strings.Cut(masked, "***")
				require.LessOrEqual(t, len(begin)+len(end), len("Basic .")+(len(around)+len(after)+2)*4/3+4, "little more is left than what is around it: %s", masked)
			}
		}
	}
	require.Equal(t, "Basic dXNlcjpwYXNzd29yZA==", v.Mask("Basic dXNlcjpwYXNzd29yZA=="))
}

// Rule SE1.
func TestASecretInHexadecimalDigitsIsMaskedInEitherCase(t *testing.T) {
	t.Parallel()
	const value = "s3cret/~?"
	v := secret.NewVault([]string{"SURFIN_SECRET_A=" + value}, t.TempDir(), nil)
	for _, format := range []string{"%x", "%X"} {
		require.Equal(t, "say ***!", v.Mask("say "+fmt.Sprintf(format, value)+"!"))
	}
}

// Rule SE1: the hexadecimal digits and the base64 of a short secret may be
// ordinary data.
func TestAShortSecretIsMaskedAsItIsOnly(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"1234", "t?<n", `a/b c"7`} {
		v := secret.NewVault([]string{"SURFIN_SECRET_A=" + value}, t.TempDir(), nil)
		_, err := v.Lookup(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, "say ***", v.Mask("say "+value))
		require.Equal(t, "http://h/?k=***", v.Mask("http://h/?k="+url.QueryEscape(value)))
		for _, text := range []string{hex.EncodeToString([]byte(value)), fmt.Sprintf("%X", value), base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte("user:" + value))} {
			require.Equal(t, text, v.Mask(text))
		}
	}
}

func TestWhatACutLeavesOfASecretIsMasked(t *testing.T) {
	t.Parallel()
	const value = "0123456789abcdef"
	v := secret.NewVault([]string{"SURFIN_SECRET_A=" + value}, t.TempDir(), nil)
	_, err := v.Lookup(t.Context(), "a")
	require.NoError(t, err)
	for text, want := range map[string]string{
		"shell: …9abcdef and more":        "shell: …*** and more",
		"it is 0123456… (12 bytes more)":  "it is ***… (12 bytes more)",
		"…" + value + "…":                 "…***…",
		"…def and 012…":                   "…def and 012…",
		"…cdef… and 0123456789 elsewhere": "…***… and 0123456789 elsewhere",
	} {
		require.Equal(t, want, v.Mask(text))
	}
}
