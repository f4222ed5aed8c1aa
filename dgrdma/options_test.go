package dgrdma

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/url"
)

// TestOptionsAreDocumented: what Open's documentation says of an option is what
// CheckOption says.
func TestOptionsAreDocumented(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "open.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]string)
	for _, c := range f.Comments {
		for _, m := range regexp.MustCompile(`(?m)^\t(\w+)=\S+ +(.*)$`).FindAllStringSubmatch(c.Text(), -1) {
			documented[m[1]] = strings.Replace(m[2], "; see [ether.Config])", ")", 1)
		}
	}
	for key, o := range options {
		if documented[key] != o.meaning {
			t.Errorf("%s is documented as %q, but means %q", key, documented[key], o.meaning)
		}
		delete(documented, key)
	}
	if len(documented) > 0 {
		t.Errorf("documented, but not there: %v", documented)
	}
}

func TestCheckOption(t *testing.T) {
	for _, c := range []struct{ key, value, meaning, wrong string }{
		{"giveup", "2s", "without progress for so long, a peer is down (default 10s)", ""},
		{"giveup", "2", "without progress for so long, a peer is down (default 10s)", "says giveup=2: need a duration"},
		{"profile", "fpgas", "kind of peers: native, fpga, opencpi, opencpi2, opencpi-legacy", `no peer profile "fpgas"`},
		{"speed", "high", "", `has the option "speed"; there are accept, busypoll`},
	} {
		meaning, err := CheckOption(url.UDP, c.key, c.value)
		if meaning != c.meaning || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s=%s: %q, %v", c.key, c.value, meaning, err)
		}
	}
}
