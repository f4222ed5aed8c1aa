package tests

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rpcTable has a row for each requirement of RPC-over-RDMA, with its level: the third cell.
const rpcTable = "docs/rpcrdma-requirements.md"

var (
	rpcRow   = regexp.MustCompile(`(?m)^\| (RPC[12]-\d{3}|RPCN-\d{2}) \| (?:[^|]+ )?\| ([MSO-]) \| [^|]+ \|$`)
	rpcCited = regexp.MustCompile(`\b(RPC[12])-\d{3}\b((?:,? (?:and |to |// )*\d{3}\b|,\s+// (?:and |to )?\d{3}\b)*)`)
	rpcEach  = regexp.MustCompile(`\bRPCN-\d{2}\b`)
)

// mostUntested bounds the rows of level M that no test names, while the state of a connection is not there yet. It
// only falls: it is 0 when that is done.
const mostUntested = 6

// TestRequirementsOfRPC checks that every number that is cited has a row, and counts the rows of level M that no test names.
func TestRequirementsOfRPC(t *testing.T) {
	texts := readTexts(t)
	levels := make(map[string]string)
	for _, row := range rpcRow.FindAllStringSubmatch(texts[rpcTable], -1) {
		if levels[row[1]] != "" {
			t.Errorf("%s has %s twice", rpcTable, row[1])
		}
		levels[row[1]] = row[2]
	}
	if want := strings.Count(texts[rpcTable], "\n| RPC"); len(levels) != want || want < 150 {
		t.Errorf("%d of %d rows of %s are read", len(levels), want, rpcTable)
	}
	tested := make(map[string]bool)
	for path, text := range texts {
		if path == rpcTable || path == "tests/rpcrdma_numbers_test.go" {
			continue
		}
		for _, number := range append(citedBy(rpcCited, text), rpcEach.FindAllString(text, -1)...) {
			if levels[number] == "" {
				t.Errorf("%s cites %s, which %s does not have", path, number, rpcTable)
			}
			tested[number] = tested[number] || strings.HasSuffix(path, "_test.go")
		}
	}
	var untested []string
	for number, level := range levels {
		if level == "M" && !tested[number] {
			untested = append(untested, number)
		}
	}
	slices.Sort(untested)
	t.Logf("no test names %d rows of level M: %s", len(untested), strings.Join(untested, ", "))
	if len(untested) > mostUntested {
		t.Errorf("no test names %d rows of level M, and %d were the most so far", len(untested), mostUntested)
	}
}

// TestCitationsOfRPCAreRead checks how citations of several numbers are read.
func TestCitationsOfRPCAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"(RPC2-045, 047, 048; RPC1-032)": "RPC2-045 RPC2-047 RPC2-048 RPC1-032", "RPC2-030 to 032 and 035": "RPC2-030 RPC2-030 RPC2-031 RPC2-032 RPC2-035",
		"RPC2-080, 1024 octets": "RPC2-080",
	} {
		if got := strings.Join(citedBy(rpcCited, text), " "); got != want {
			t.Errorf("%q cites %s, want %s", text, got, want)
		}
	}
}
