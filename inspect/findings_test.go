package inspect

import (
	"fmt"
	"strings"
	"testing"
)

// TestFindingsOfAKind checks that of one kind and severity so many findings are shown, of which the last says how many there are
// more (N18).
func TestFindingsOfAKind(t *testing.T) {
	for _, there := range []int{1, mostOfAKind, mostOfAKind + 1, mostOfAKind + 2, 100} {
		var c findings
		for i := range there {
			c.add(Problem, "this", i, nil, "number %d", i)
			c.add(Warning, "this", i, nil, "number %d", i)
		}
		c.add(Problem, "that", 0, nil, "another")
		got := map[string]int{}
		for _, f := range c.sorted() {
			got[string(f.Severity)+" "+f.Kind] += 1 + f.More
			if want := fmt.Sprintf(" %s like this one %s left out.", count(f.More, "finding"), isAre(f.More)); strings.HasSuffix(f.Text, want) != (f.More > 0) || !strings.HasPrefix(f.Text, "number") && f.Kind == "this" {
				t.Errorf("of %d: %q", there, f.Text)
			}
		}
		want := map[string]int{"problem this": there, "warning this": there, "problem that": 1}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
		if lines := len(c.sorted()); lines > 2*mostOfAKind+1 {
			t.Errorf("of %d: %d lines", there, lines)
		}
	}
}
