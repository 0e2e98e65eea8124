package cli

import (
	"io"
	"os"
	"sync"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/vbauerster/mpb/v8"

	"github.com/surfin-batch/surfin/internal/secret"
)

// While a progress bar is drawn, all other output is written above it.
type stderr struct {
	plain    io.Writer // without colors if not supported
	file     *os.File  // the terminal, or nil
	colors   bool
	mu       sync.Mutex
	progress *mpb.Progress
	secrets  *secret.Vault // nil until the settings are read
}

func newStderr(w io.Writer, environ []string) *stderr {
	painted := colorprofile.NewWriter(w, environ)
	s := &stderr{plain: painted, colors: painted.Profile > colorprofile.NoTTY}
	if f, ok := w.(*os.File); ok && painted.Profile > colorprofile.NoTTY && hasWidth(f) {
		s.file = f
	}
	return s
}

// Some terminals report zero columns.
func hasWidth(f *os.File) bool {
	width, _, err := term.GetSize(f.Fd())
	return err == nil && width > 0
}

// Write masks passwords of URLs and used secrets in errors and logs from
// anywhere.
func (s *stderr) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.plain
	if s.progress != nil {
		w = s.progress
	}
	if _, err := io.WriteString(w, s.secrets.Mask(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *stderr) hide(secrets *secret.Vault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = secrets
}

func (s *stderr) paint(style ansi.Style, text string) string {
	if !s.colors {
		return text
	}
	return style.Styled(text)
}

func (s *stderr) startProgress() *mpb.Progress {
	if s.file == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = mpb.New(mpb.WithOutput(s.file))
	return s.progress
}

func (s *stderr) endProgress() {
	s.mu.Lock()
	progress := s.progress
	s.mu.Unlock()
	if progress == nil {
		return
	}
	progress.Shutdown()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = nil
}
