"""Log in and out."""

from __future__ import annotations

from django.contrib.auth import views
from django.urls import path

urlpatterns = [
    path("login/", views.LoginView.as_view(template_name="pages/login.html"), name="login"),
    path("logout/", views.LogoutView.as_view(), name="logout"),
]
