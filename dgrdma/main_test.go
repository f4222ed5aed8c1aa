package dgrdma_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails when goroutines of the module outlive the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if left := leaked(); left != "" {
			fmt.Fprintln(os.Stderr, "goroutines left behind:\n"+left)
			code = 1
		}
	}
	os.Exit(code)
}

func leaked() (left string) {
	for range 50 {
		buf := make([]byte, 1<<20)
		left = ""
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "dgrdma/") && !strings.Contains(g, "dgrdma_test.leaked") {
				left += g + "\n"
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(20 * time.Millisecond) // real goroutines need real time to end
	}
	return left
}
