package congestion

import (
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) {
	fixture.EndHangs()
	m.Run()
}
