// A plugin of clang-tidy's: its checks look at what our sources declare, and not at what headers of the system do, of
// which they say nothing anyway. Of a room's sources nine tenths are such headers, and to look at them takes three
// quarters of clang-tidy's time. Types, bases and functions of theirs that our sources use are known as ever.
#include <memory>
#include <string>
#include <vector>

#include "clang/AST/ASTConsumer.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Frontend/FrontendPluginRegistry.h"

namespace {

class OwnCode : public clang::ASTConsumer {
 public:
  void HandleTranslationUnit(clang::ASTContext& context) override {
    const clang::SourceManager& sources = context.getSourceManager();
    std::vector<clang::Decl*> own;
    for (clang::Decl* decl : context.getTranslationUnitDecl()->decls()) {
      if (!sources.isInSystemHeader(sources.getExpansionLoc(decl->getLocation()))) own.push_back(decl);
    }
    context.setTraversalScope(own);
  }
};

class OwnCodeFirst : public clang::PluginASTAction {
 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&, llvm::StringRef) override {
    return std::make_unique<OwnCode>();
  }
  bool ParseArgs(const clang::CompilerInstance&, const std::vector<std::string>&) override { return true; }
  ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<OwnCodeFirst> kOwnCode("own-code", "lets checks look at own code alone");

}  // namespace
