package secret

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Folder is where container platforms put secrets.
	Folder = "/run/secrets"
	// MinValue is the minimum bytes of a secret: a shorter mask would hit other text.
	MinValue    = 4
	maxValue    = 64 << 10
	commandTime = 30 * time.Second
	keepFor     = time.Minute
)

// Origin is where a secret is: one of the fields is set.
type Origin struct {
	File    string
	Command []string
	Dir     string
}

// MissingError is the error for a name without a secret.
type MissingError struct{ Name string }

// Error names the secret.
func (e *MissingError) Error() string { return "there is no secret " + e.Name }

// Cure says where it may be put.
func (e *MissingError) Cure() string {
	return fmt.Sprintf("set %s, put it into %s, or set its location in surfin.yaml: secrets: {%s: {file: PATH}}", Variable(e.Name), Folder+"/"+e.Name, e.Name)
}

// Variable is the variable of the environment that may have a secret.
func Variable(name string) string { return "SURFIN_SECRET_" + strings.ToUpper(name) }

// Vault finds secrets by name and masks those found. It is safe for concurrent use; a nil Vault has
// none.
type Vault struct {
	environ map[string]string
	folder  string
	origins map[string]Origin

	mu       sync.Mutex
	known    map[string]bool
	unmasked []string
	kept     map[string]commandAnswer
	forms    atomic.Pointer[masks] // of the known values, or nil
}

type commandAnswer struct {
	value string
	until time.Time
}

// NewVault looks in the environment, folder's files and origins, in this order; empty folder:
// [Folder].
func NewVault(environ []string, folder string, origins map[string]Origin) *Vault {
	v := &Vault{environ: map[string]string{}, folder: folder, origins: origins, known: map[string]bool{}, kept: map[string]commandAnswer{}}
	if v.folder == "" {
		v.folder = Folder
	}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, "SURFIN_SECRET_") {
			v.environ[name] = value
		}
	}
	v.learnEnvironment(environ)
	return v
}

// String keeps the values out of printed settings.
func (v *Vault) String() string { return "secrets" }

// Lookup returns a secret, and masks it from then on; *MissingError if missing. No error contains a
// value.
func (v *Vault) Lookup(ctx context.Context, name string) (string, error) {
	if v == nil {
		return "", &MissingError{name}
	}
	value, err := v.find(ctx, name)
	if err != nil {
		return "", err
	}
	return v.masked(name, value)
}

// Give masks a given value, and returns it without a final line break.
func (v *Vault) Give(name, value string) (string, error) {
	if v == nil {
		return "", &MissingError{name}
	}
	value, err := trimmed(name, []byte(value))
	if err != nil {
		return "", err
	}
	return v.masked(name, value)
}

func (v *Vault) masked(name, value string) (string, error) {
	if len(value) < MinValue {
		return "", fmt.Errorf("the secret %s has %d bytes: a secret of fewer than %d bytes cannot be masked", name, len(value), MinValue)
	}
	v.remember(value)
	return value, nil
}

func (v *Vault) find(ctx context.Context, name string) (string, error) {
	for _, variable := range []string{Variable(name), "SURFIN_SECRET_" + name} {
		if value := v.environ[variable]; value != "" {
			return value, nil
		}
	}
	value, err := readFile(name, filepath.Join(v.folder, name))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return value, err
	}
	origin, ok := v.origins[name]
	switch {
	case !ok:
		return "", &MissingError{name}
	case origin.File != "":
		return readFile(name, origin.File)
	}
	return v.run(ctx, name, origin)
}

func readFile(name, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the secret %s: %w", name, err)
	}
	defer f.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(f, maxValue+1))
	if err != nil {
		return "", fmt.Errorf("the secret %s: %w", name, err)
	}
	return trimmed(name, text)
}

func trimmed(name string, text []byte) (string, error) {
	if len(text) > maxValue {
		return "", fmt.Errorf("the secret %s has more than %d bytes", name, maxValue)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// run leaves standard error out of messages: the secret may be in it.
func (v *Vault) run(ctx context.Context, name string, origin Origin) (string, error) {
	v.mu.Lock()
	answer, ok := v.kept[name]
	v.mu.Unlock()
	if ok && time.Now().Before(answer.until) {
		return answer.value, nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, origin.Command[0], origin.Command[1:]...) //nolint:gosec // of the settings
	cmd.Dir, cmd.WaitDelay = origin.Dir, time.Second
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("the command for the secret %s, %s: %w", name, origin.Command[0], err)
	}
	value, err := trimmed(name, out.Bytes())
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	v.kept[name] = commandAnswer{value, time.Now().Add(keepFor)}
	v.mu.Unlock()
	return value, nil
}

func (v *Vault) remember(value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known[value] {
		return
	}
	v.known[value] = true
	var forms []string
	for known := range v.known {
		forms = append(forms, formsOf(known)...)
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // the longest first
	v.forms.Store(newMasks(slices.Compact(forms)))
}

func formsOf(value string) []string {
	forms := append([]string{value}, urlForms(value)...)
	for _, escapeHTML := range []bool{true, false} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(escapeHTML)
		if err := enc.Encode(value); err == nil {
			forms = append(forms, strings.Trim(strings.TrimSpace(b.String()), `"`))
		}
	}
	quoted := strconv.Quote(value)
	forms = append(forms, quoted[1:len(quoted)-1])
	if len(value) >= MinKnown {
		forms = append(forms, encodedForms(value)...)
	}
	for _, line := range strings.Split(value, "\n") {
		if line = strings.TrimSpace(line); len(line) >= 2*MinValue {
			forms = append(forms, line)
		}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// encodedForms leaves out short values: 31323334 is 1234.
func encodedForms(value string) []string {
	digits := hex.EncodeToString([]byte(value))
	forms := []string{digits, strings.ToUpper(digits)}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, encoding.EncodeToString([]byte(value)))
		for before := range 3 {
			forms = append(forms, inBase64(encoding, value, before))
		}
	}
	return forms
}

func urlForms(value string) []string {
	query := url.QueryEscape(value)
	component := strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(query)
	forms := []string{query, strings.ReplaceAll(query, "+", "%20"), component, url.PathEscape(value)}
	for _, form := range slices.Clone(forms) {
		forms = append(forms, escape.ReplaceAllStringFunc(form, strings.ToLower))
	}
	return forms
}

var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

// inBase64 is the base64 part that depends on no byte around the value; before is modulo 3.
func inBase64(encoding *base64.Encoding, value string, before int) string {
	const bitsOfByte, bitsOfDigit = 8, 6
	digits := encoding.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, before), value...))
	begin := (before*bitsOfByte + bitsOfDigit - 1) / bitsOfDigit
	end := (before + len(value)) * bitsOfByte / bitsOfDigit
	return digits[begin:end]
}

// Values masks the secrets that were found, and nothing else.
func (v *Vault) Values(text string) string {
	if v == nil {
		return text
	}
	if forms := v.forms.Load(); forms != nil {
		return forms.Replace(text)
	}
	return text
}

// Mask masks the secrets that were found, and passwords as [Text] does.
func (v *Vault) Mask(text string) string { return Text(v.Values(text)) }

// JSON masks the found secrets in the texts of a JSON document, which stays valid.
func (v *Vault) JSON(document []byte) []byte {
	if v == nil || v.forms.Load() == nil {
		return document
	}
	return []byte(inLiterals(string(document), v.forms.Load().replace))
}
