package interop_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/rehome-db/rehome/interop"
)

// The engines and the binary under test are shared by all tests: starting an
// engine costs more than most scenarios.
var (
	engines      []*interop.Engine
	lancedb39    *interop.Engine
	lancedb31    *interop.Engine
	pylance      *interop.Engine
	rehomeBinary string
)

// switchVariable asks for the suite; "all" asks for combinations that take long and
// differ little, too.
const switchVariable = "REHOME_INTEROP"

func everything() bool { return os.Getenv(switchVariable) == "all" }

func TestMain(m *testing.M) {
	if os.Getenv(switchVariable) == "" {
		os.Exit(m.Run())
	}
	os.Exit(runWithEngines(m))
}

func runWithEngines(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "rehome-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if rehomeBinary, err = buildBinary(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, s := range []struct {
		spec interop.Spec
		to   **interop.Engine
	}{{interop.LanceDB39, &lancedb39}, {interop.LanceDB31, &lancedb31}, {interop.PyLance14, &pylance}} {
		e, err := interop.Start(context.Background(), s.spec)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		*s.to = e
		engines = append(engines, e)
	}
	code = m.Run()
	for _, e := range engines {
		if err := e.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

func buildBinary(dir string) (string, error) {
	bin := filepath.Join(dir, "rehome")
	out, err := exec.Command("go", "build", "-o", bin, "github.com/rehome-db/rehome/cmd/rehome").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("interop: build cmd/rehome: %w\n%s", err, out)
	}
	return bin, nil
}

// needEngines skips a test where the suite is not asked for. The interop job of
// .ci/run sets the variable, so there nothing is skipped.
func needEngines(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv(switchVariable) == "" {
		t.Skipf("%s is not set: the stock engines are needed, see interop/doc.go", switchVariable)
	}
	return t.Context()
}
