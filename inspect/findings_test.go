package inspect

import (
	"fmt"
	"testing"
)

// TestFindingsOfAKind: too many of one kind and severity are counted by one of the same severity, and one alone is
// shown in the place of that.
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
			got[string(f.Severity)+" "+f.Kind] += max(f.More, 1)
			if f.More == 1 {
				t.Errorf("of %d: %q", there, f.Text)
			}
		}
		want := map[string]int{"problem this": there, "warning this": there, "problem that": 1}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
		if lines := len(c.sorted()); lines > 2*(mostOfAKind+1)+1 {
			t.Errorf("of %d: %d lines", there, lines)
		}
	}
}
