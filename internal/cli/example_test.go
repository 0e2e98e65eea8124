package cli_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/shell"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// A command line over an application's components. Package batch builds App from registrations;
// commands that run no job need its descriptions only.
func ExampleMain() {
	path, done := testexample.File("tidy.yaml", "job: tidy\nflow:\n- {step: tidy, tasklet: {shell: [rm, -f, old.log]}}\n")
	defer done()
	app := cli.App{Name: "nightly", Version: "1.2.0", Registry: testexample.Must(registry.New(shell.Components(), nil, nil))}

	code := cli.Main(context.Background(), app, []string{"list", "components"}, strings.NewReader(""), &strings.Builder{}, os.Stderr)
	fmt.Println("exit", code)
	code = cli.Main(context.Background(), app, []string{"validate", path}, strings.NewReader(""), &strings.Builder{}, os.Stderr)
	fmt.Println("exit", code)
	code = cli.Main(context.Background(), app, []string{"rum"}, strings.NewReader(""), &strings.Builder{}, &strings.Builder{})
	fmt.Println("exit", code)
	// Output:
	// exit 0
	// exit 0
	// exit 2
}
