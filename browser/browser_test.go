package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/surfin-batch/surfin/internal/testdb"
)

//nolint:gochecknoglobals // set once by TestMain
var (
	surfin   string          // the program
	chromium context.Context // the one browser of all tests
	pictures string          // where pictures of the pages are kept
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	root, err := filepath.Abs("..")
	if err != nil {
		return 1, err
	}
	pictures = filepath.Join(root, "bin", "console")
	if err := os.RemoveAll(pictures); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "surfin-browser-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, removed(dir)) }()
	surfin = filepath.Join(dir, "surfin")
	build := exec.CommandContext(context.Background(), "go", "build", "-ldflags=-s -w", "-o", surfin, "./cmd/surfin")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the command: %w\n%s", err, out)
	}
	stop, err := start(filepath.Join(dir, "profile"))
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return testdb.Main(m), nil
}

// removed deletes a folder. Processes of the browser may write to it for a moment after its end.
func removed(dir string) (err error) {
	for range 50 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// start starts the browser, which can resolve no name: a request to another host fails.
func start(profile string) (stop func() error, err error) {
	program, err := installed()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(profile), chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("lang", "en-US"), chromedp.Env("TZ=UTC"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it does not start as root with it
	}
	allocator, forget := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		forget()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	chromium = ctx
	return func() error {
		ending, end := context.WithTimeout(ctx, 10*time.Second)
		defer end()
		defer forget()
		return chromedp.Cancel(ending)
	}, nil
}

func installed() (string, error) {
	programs := []string{"chromium", "chromium-browser", "google-chrome"}
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("none of %s is installed: run tools/ensure chromium", strings.Join(programs, ", "))
}
