package netns

import (
	"os"
	"strconv"
	"testing"

	"github.com/dgrdma/dgrdma/internal/namespace"
)

// Require skips the test where namespaces cannot be made, and says what is
// missing. On CI (environment variable CI) it fails, so that these tests cannot
// disappear unnoticed.
func Require(t testing.TB) {
	t.Helper()
	why := Missing()
	if why == "" {
		return
	}
	if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
		t.Fatalf("no network namespaces on CI: %s", why)
	}
	t.Skipf("no network namespaces: %s", why)
}

// Missing returns what keeps this process from making network namespaces, or
// nothing.
func Missing() string {
	if why := namespace.Missing(); why != "" {
		return why + "; run the tests as root"
	}
	return ""
}
