package durabletest_test

import (
	"os"
	"testing"

	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(leaktest.Main(pgtest.InMemory(func() int { return durabletest.Main(m) })))
}
