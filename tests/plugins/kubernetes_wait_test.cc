// The meaning of Kubernetes' words for why a pod or a Job waits.
#include "kubernetes/wait.h"

#include <gtest/gtest.h>

#include <string>

namespace ridgeline::kubernetes {
namespace {

TEST(KubernetesWait, KnowsWhereNoNodeIsLeft) {
  // In the words of releases 1.16, 1.20, 1.24 and later.
  for (const char* none :
       {"0/2 nodes are available: 2 node(s) didn't match node selector.",
        "0/3 nodes are available: 1 node(s) had taint {node-role.kubernetes.io/master: }, that the "
        "pod didn't tolerate, 2 node(s) didn't match Pod's node affinity.",
        "0/12 nodes are available: 1 node(s) had untolerated taint {a: b}, 1 node(s) were "
        "unschedulable, 10 node(s) didn't match Pod's node affinity/selector. preemption: 0/12 nodes "
        "are available: 12 Preemption is not helpful for scheduling."}) {
    EXPECT_TRUE(IsWithoutNode(none)) << none;
  }
  for (const char* room : {"0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity.",
                           "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
                           "0/9 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 8 node(s) didn't "
                           "match Pod's node affinity/selector.",
                           "0/0 nodes are available: .", "no nodes available to schedule pods", "0/", "", " node(s) ",
                           "0/99999999999999999999 nodes are available: 1 node(s) were unschedulable",
                           "node(s) were unschedulable, 9 node(s) were unschedulable"}) {
    EXPECT_FALSE(IsWithoutNode(room)) << room;
  }
}

TEST(KubernetesWait, KnowsAQuotaThatNoWaitingHelps) {
  const std::string text = "pods \"x\" is forbidden: exceeded quota: q, requested: ";
  EXPECT_TRUE(IsBeyondQuota(text + "limits.cpu=64, used: limits.cpu=0, limited: limits.cpu=8"));
  EXPECT_FALSE(IsBeyondQuota(text + "limits.cpu=4, used: limits.cpu=8, limited: limits.cpu=8"));
  EXPECT_TRUE(IsBeyondQuota(
      text + "pods=1,requests.memory=2Ti, used: pods=0,requests.memory=0, limited: pods=9,requests.memory=1Ti"));
  EXPECT_FALSE(IsBeyondQuota("something else"));
  EXPECT_TRUE(WaitOfRefusal(text + "pods=1, used: pods=0, limited: pods=0").hopeless);
  EXPECT_FALSE(WaitOfRefusal(text + "pods=1, used: pods=1, limited: pods=1").hopeless);
  EXPECT_TRUE(WaitOfRefusal("pods \"x\" is forbidden: no PriorityClass with name y was found").hopeless);
}

}  // namespace
}  // namespace ridgeline::kubernetes
